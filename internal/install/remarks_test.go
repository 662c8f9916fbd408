// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"slices"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each remark, and none where all is well.
func TestRemarks(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const nft, legacy = "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"
	prints := func(version string) []byte { return []byte("#!/bin/sh\necho 'iptables v" + version + "'\n") }
	put := func(path string, content []byte) {
		t.Helper()
		host.Check(t, os.RemoveAll(path))
		host.Check(t, os.WriteFile(path, content, 0o755))
	}
	const bypasses = `"/usr/local/sbin/iptables" bypasses the wrapper: it runs "/usr/sbin/xtables-nft-multi"`
	for _, test := range []struct {
		doc  string
		make func()
		want []string
	}{
		{"all is well", func() {
			put(nft, prints("1.8.9 (nf_tables)"))
			put(legacy, prints("1.8.9 (legacy)"))
		}, nil},
		{"different versions", func() { put(legacy, prints("1.8.11 (legacy)")) }, []string{
			`the backends have different versions: "/usr/sbin/iptables-nft" is 1.8.9, ` +
				`"/usr/sbin/iptables-legacy" is 1.8.11`,
		}},
		{"an old one", func() {
			put(nft, prints("1.8.7 (nf_tables)"))
			put(legacy, prints("1.8.7 (legacy)"))
		}, []string{
			`"/usr/sbin/iptables-nft" is version 1.8.7, which loses parts of rules that 1.8.8 or newer wrote`,
		}},
		{"not started: others can change it", func() { host.Check(t, os.Chmod(nft, 0o777)) }, nil},
		{"does not start", func() { put(nft, []byte("\x7fELF of another architecture")) }, nil},
		{"another path", func() {
			host.Run(t, "mount", "-t", "tmpfs", "-o", "mode=755", "none", "/usr/local/sbin")
			host.Check(t, os.Symlink(nft, "/usr/local/sbin/iptables"))
		}, []string{bypasses}},
		{"another path, which goes through the switch", func() {
			host.Check(t, os.Remove("/usr/local/sbin/iptables"))
			host.Check(t, os.Symlink("/usr/sbin/iptables", "/usr/local/sbin/iptables"))
		}, nil},
		{"one backend", func() { host.Check(t, os.Remove(legacy)) }, []string{
			"there is no iptables for legacy here: on a host that uses legacy, the commands end with status 127",
		}},
	} {
		test.make()
		done := installs(t, "/usr/sbin", false)
		if !slices.Equal(done.Remarks, test.want) {
			t.Errorf("%s: got %q", test.doc, done.Remarks)
		}
	}
}
