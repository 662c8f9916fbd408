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
	_, remarks := installs(t, "/usr/sbin", false)
	if remarks != nil {
		t.Errorf("both backends: got %q", remarks)
	}
	host.Check(t, os.Remove(legacy))
	_, remarks = installs(t, "/usr/sbin", false)
	want := []string{
		"on a host that uses legacy, the commands fail: no such program: iptables-legacy or xtables-legacy-multi",
	}
	if !slices.Equal(remarks, want) {
		t.Errorf("one backend: got %q", remarks)
	}
	_, err := os.Stat("/run/started")
	if !os.IsNotExist(err) {
		t.Errorf("a program was started: %v", err)
	}
}
