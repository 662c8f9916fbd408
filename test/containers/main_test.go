// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package containers asks doctor about random containers: what it says must be so, what it says nothing of must be right, and
// each fix must cure its finding.
package containers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// wrapperVariable names the program to test. Without it, it is built.
const wrapperVariable = "IPTABLES_WRAPPER"

func TestMain(m *testing.M) {
	dir, err := prepare()
	if dir != "" {
		defer os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

func prepare() (dir string, err error) {
	if err := host.Enter(); err != nil || os.Getenv(wrapperVariable) != "" {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "iptables-wrapper"); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "iptables-wrapper")
	if output, err := exec.Command("make", "-C", "../..", "build", "BINARY="+path).CombinedOutput(); err != nil {
		return dir, fmt.Errorf("make build: %w\n%s", err, output)
	}
	return dir, os.Setenv(wrapperVariable, path)
}
