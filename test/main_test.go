// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package test runs the real program on the real kernel, with the real iptables programs of both backends, each case in
// a container of its own.
package test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	os.Exit(prepared(m))
}

// wrapperVariable names the program to test. Without it, it is built.
const wrapperVariable = "IPTABLES_WRAPPER"

func prepared(m *testing.M) int {
	dir, err := prepare()
	if dir != "" {
		defer os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// prepare returns the temporary directory of the program that it builds.
func prepare() (dir string, err error) {
	if err := host.Enter(); err != nil || os.Getenv(wrapperVariable) != "" {
		return "", err
	}
	// The result depends on these files, which "go test" knows only if the test reads them. Otherwise it would take a
	// result from its cache that is about another program.
	for _, pattern := range []string{"../*.go", "../*/*.go", "../internal/*/*.go", "../go.mod", "../Makefile", "script/*", "nodes/*", "*.sh", "../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("no %s: %w", pattern, err)
		}
		for _, file := range files {
			if _, err := os.ReadFile(file); err != nil {
				return "", err
			}
		}
	}
	if dir, err = os.MkdirTemp("", "iptables-wrapper"); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "iptables-wrapper")
	if output, err := exec.Command("make", "-C", "..", "build", "BINARY="+path).CombinedOutput(); err != nil {
		return dir, fmt.Errorf("make build: %w\n%s", err, output)
	}
	return dir, os.Setenv(wrapperVariable, path)
}

var names = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}

// putWrapper copies the program to where an image would have it.
func putWrapper(tb testing.TB, path string) {
	tb.Helper()
	content := host.Read(tb, os.Getenv(wrapperVariable))
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

func proc(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }

func read(t *testing.T, path string) string {
	t.Helper()
	content := host.Read(t, path)
	return string(content)
}

// readAll reads to the end.
func readAll(r io.Reader) string {
	content, _ := io.ReadAll(r)
	return string(content)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	host.Check(t, err)
	return n
}

// inode returns a file's inode.
func inode(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

const (
	nftProgram    = "/usr/sbin/xtables-nft-multi"
	legacyProgram = "/usr/sbin/xtables-legacy-multi"
	wrapperFile   = "/usr/sbin/iptables-wrapper"
)
