// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"slices"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A missing program is a remark, and nothing else is: no program of iptables is started, so none needs to work.
func TestRemarks(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const nft, legacy = "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"
	started := []byte("#!/bin/sh\ntouch /run/started\n")
	for _, program := range []string{nft, legacy} {
		host.Check(t, os.Remove(program))
		host.Check(t, os.WriteFile(program, started, 0o755))
	}
	done := installs(t, "/usr/sbin", false)
	if done.Remarks != nil {
		t.Errorf("both backends: got %q", done.Remarks)
	}
	host.Check(t, os.Remove(legacy))
	done = installs(t, "/usr/sbin", false)
	want := []string{
		"there is no iptables for legacy here: on a host that uses legacy, the commands end with status 127",
	}
	if !slices.Equal(done.Remarks, want) {
		t.Errorf("one backend: got %q", done.Remarks)
	}
	_, err := os.Stat("/run/started")
	if !os.IsNotExist(err) {
		t.Errorf("a program was started: %v", err)
	}
}
