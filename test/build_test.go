// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// tags are those of the Makefile.
func tags(t *testing.T) string {
	t.Helper()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(makefile)) {
		if value, ok := strings.CutPrefix(line, "TAGS := "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatal("no TAGS in the Makefile")
	return ""
}

// What is linked in is paid for by every call.
func TestDependencies(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-tags", tags(t), "..")
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(output))
	if !slices.Contains(deps, "github.com/urfave/cli/v2") || !slices.Contains(deps, "golang.org/x/sys/unix") {
		t.Fatalf("this is not the wrapper: %v", deps)
	}
	for _, dep := range deps {
		for _, unwanted := range []string{
			"github.com/russross/blackfriday", "github.com/cpuguy83/go-md2man", "github.com/coreos/go-iptables",
			"github.com/rogpeppe/go-internal", "golang.org/x/tools", "net", "net/http", "crypto/tls", "testing",
		} {
			if dep == unwanted || strings.HasPrefix(dep, unwanted+"/") && unwanted != "net" {
				t.Errorf("%s is linked in", dep)
			}
		}
	}
}

func TestStatic(t *testing.T) {
	f, err := elf.Open(os.Getenv(wrapperVariable))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); len(libraries) > 0 || err != nil && f.Section(".dynamic") != nil {
		t.Errorf("it needs %v, %v", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic loader")
		}
	}
}

// The same source gives the same bytes, wherever it lies.
func TestReproducible(t *testing.T) {
	var builds [2][]byte
	for i, name := range []string{"a", "a longer/path"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"go.mod", "go.sum", "Makefile", "detect", "exec", "internal", "CHANGELOG.md"} {
			host.Run(t, "cp", "-r", "../"+part, dir)
		}
		sources, err := filepath.Glob("../*.go")
		if err != nil {
			t.Fatal(err)
		}
		host.Run(t, "cp", append(sources, dir)...)
		host.Run(t, "make", "-C", dir, "build", "VERSION=v0.0.0-test")
		if builds[i], err = os.ReadFile(filepath.Join(dir, "bin/iptables-wrapper")); err != nil {
			t.Fatal(err)
		}
		if got := host.Run(t, filepath.Join(dir, "bin/iptables-wrapper"), "--version"); got != "iptables-wrapper version v0.0.0-test\n" {
			t.Errorf("got version %q", got)
		}
	}
	if !bytes.Equal(builds[0], builds[1]) {
		t.Error("two builds differ")
	}
}
