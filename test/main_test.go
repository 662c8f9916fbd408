// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package test runs the real program on the real kernel, with the real iptables programs of both backends, each case in
// a container of its own.
package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// wrapperVariable names the program to test. Without it, it is built.
const wrapperVariable = "IPTABLES_WRAPPER"

func prepare() error {
	if err := host.Enter(); err != nil || os.Getenv(wrapperVariable) != "" {
		return err
	}
	// The result depends on these files, which "go test" knows only if the test reads them. Otherwise it would take a
	// result from its cache that is about another program.
	for _, pattern := range []string{"../*.go", "../*/*.go", "../go.mod", "../Makefile", "script/*", "nodes/*", "*.sh", "../docs/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no %s: %w", pattern, err)
		}
		for _, file := range files {
			if _, err := os.ReadFile(file); err != nil {
				return err
			}
		}
	}
	if output, err := exec.Command("make", "-C", "..", "build").CombinedOutput(); err != nil {
		return fmt.Errorf("make build: %w\n%s", err, output)
	}
	path, err := filepath.Abs("../bin/iptables-wrapper")
	if err != nil {
		return err
	}
	return os.Setenv(wrapperVariable, path)
}

var names = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}

// putWrapper copies the program to where an image would have it.
func putWrapper(tb testing.TB, path string) {
	tb.Helper()
	content, err := os.ReadFile(os.Getenv(wrapperVariable))
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o755); err != nil {
		tb.Fatal(err)
	}
}

// installed puts the wrapper into the container and under the six names.
func installed(tb testing.TB) {
	tb.Helper()
	putWrapper(tb, "/usr/sbin/iptables-wrapper")
	host.Run(tb, "iptables-wrapper", "install")
}

// end returns what a name leads to, through all links.
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
			tb.Errorf("%s leads to %s, want %s", name, got, want)
		}
	}
}

const (
	nftProgram    = "/usr/sbin/xtables-nft-multi"
	legacyProgram = "/usr/sbin/xtables-legacy-multi"
	wrapperFile   = "/usr/sbin/iptables-wrapper"
)
