// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package test runs the real program on the real kernel, with the real iptables programs of both backends, each case in
// a container of its own.
package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) { host.Main(m) }

var names = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}

// putWrapper copies the program to where an image would have it.
func putWrapper(tb testing.TB, path string) {
	tb.Helper()
	content := host.Read(tb, os.Getenv(host.WrapperVariable))
	host.Check(tb, os.WriteFile(path, content, 0o755))
}

// installed puts the wrapper into the container and under the six names.
func installed(tb testing.TB) {
	tb.Helper()
	putWrapper(tb, "/usr/sbin/iptables-wrapper")
	host.Run(tb, "iptables-wrapper", "install")
}

// hostWithHint makes a host of a mode, and installs the wrapper.
func hostWithHint(t *testing.T, mode string) {
	t.Helper()
	installed(t)
	host.Run(t, "iptables-"+mode, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
}

// readOnly makes every call a first call.
func readOnly(t *testing.T) {
	t.Helper()
	host.Run(t, "sh", "-ec", "for dir in /usr/sbin /etc/alternatives; do mount -o remount,bind,ro $dir; done")
	t.Cleanup(func() { wantNames(t, wrapperFile) })
}

// inBothModes runs a test on a host of each mode, with the wrapper installed.
func inBothModes(t *testing.T, test func(t *testing.T, mode string)) {
	for _, mode := range []string{"nft", "legacy"} {
		t.Run(mode, func(t *testing.T) {
			if host.Contain(t) {
				hostWithHint(t, mode)
				test(t, mode)
			}
		})
	}
}

// end returns what a name points to, through all links.
func end(name string) string {
	path, err := filepath.EvalSymlinks(filepath.Join("/usr/sbin", name))
	if err != nil {
		return err.Error()
	}
	return path
}

// wantNames checks where each of the six names leads.
func wantNames(tb testing.TB, want string) {
	tb.Helper()
	for _, name := range names {
		if got := end(name); got != want {
			tb.Errorf("%s points to %s, want %s", name, got, want)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content := host.Read(t, path)
	return string(content)
}

const (
	nftProgram    = "/usr/sbin/xtables-nft-multi"
	legacyProgram = "/usr/sbin/xtables-legacy-multi"
	wrapperFile   = "/usr/sbin/iptables-wrapper"
)
