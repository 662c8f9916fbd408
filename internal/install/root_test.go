// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// marker makes this test program a wrapper.
const marker = "iptables-wrapper marker 7d3f6c0e-5a51-4f3b-9a1e-1f6d2c8b0e47"

// root is a root file system with both backends' programs, in a temporary directory.
type root struct {
	*testing.T
	dir string
	n   layout.Names
}

func newRoot(t *testing.T) root {
	t.Helper()
	r := root{T: t, dir: t.TempDir()}
	t2, err := tree.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.n = layout.Names{Tree: t2, Self: self.Started(marker)}
	for _, mode := range programs.Modes() {
		r.file("/usr/sbin/"+programs.MultiCall(mode), "#!/bin/sh\nexit 1\n")
	}
	return r
}

func (r root) file(path, content string) {
	r.Helper()
	path = filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		r.Fatal(err)
	}
}

func (r root) link(path, target string) {
	r.Helper()
	path = filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.Symlink(target, path); err != nil {
		r.Fatal(err)
	}
}

// all makes all six names the same link.
func (r root) all(target string) {
	r.Helper()
	for _, name := range programs.Names() {
		r.link("/usr/sbin/"+name, target)
	}
}

// snapshot is every path in the root, with what it is a link to, its size and its inode.
func (r root) snapshot() string {
	r.Helper()
	var b strings.Builder
	err := filepath.WalkDir(r.dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		target, _ := os.Readlink(path)
		fmt.Fprintln(&b, strings.TrimPrefix(path, r.dir), target, st.Size, st.Ino)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return b.String()
}

// unchanged returns a check that nothing has changed since.
func (r root) unchanged() func() {
	before := r.snapshot()
	return func() {
		r.Helper()
		if after := r.snapshot(); after != before {
			r.Errorf("something changed:\n%s\n%s", before, after)
		}
	}
}

// install must succeed, make all names point to the wrapper through the switch, and have nothing to do the second time.
func (r root) install(dir string, o Options) (changed []string) {
	r.Helper()
	changed, err := Install(r.n, dir, o)
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range r.n.Look(dir) {
		if !s.Wrapper || !s.Switched {
			r.Errorf("%s: %+v", s.Name, s)
		}
	}
	defer r.unchanged()()
	if again, err := Install(r.n, dir, o); err != nil || len(again) > 0 {
		r.Errorf("the second time: %q, %v", again, err)
	}
	return changed
}

// refuses checks that install changes nothing at all.
func (r root) refuses(dir string, o Options, want error, text string) {
	r.Helper()
	defer r.unchanged()()
	changed, err := Install(r.n, dir, o)
	if !errors.Is(err, want) || len(changed) > 0 || !strings.Contains(fmt.Sprint(err), text) {
		r.Errorf("got %q, %v, want %v with %q in it", changed, err, want, text)
	}
}
