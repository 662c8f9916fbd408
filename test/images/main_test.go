// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain removes what interrupted runs have left, and afterwards old images that have no name.
func TestMain(m *testing.M) {
	left, _ := filepath.Glob("/run/netns/" + prefix + "*")
	for _, path := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), "-")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			_ = exec.Command("ip", "netns", "delete", filepath.Base(path)).Run()
		}
	}
	status, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}
