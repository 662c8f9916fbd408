// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// The wrapper's file can be executed by everybody, whatever the umask, and a failure leaves nothing behind.
func TestWriteWrapper(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	r := newRoot(t)
	r.file("/usr/sbin/iptables-wrapper.new", "a user's")
	if err := writeWrapper(r.n.Tree, "/usr/sbin/iptables-wrapper", []byte(marker), ""); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.dir + "/usr/sbin/iptables-wrapper"); err != nil || info.Mode() != 0o755 {
		t.Errorf("got %v, %v", info, err)
	}
	if got, err := os.ReadFile(r.dir + "/usr/sbin/iptables-wrapper.new"); string(got) != "a user's" {
		t.Errorf("got %q, %v", got, err)
	}
	defer r.unchanged()()
	err := writeWrapper(r.n.Tree, ownFile, []byte("new"), "not capabilities")
	if !errors.Is(err, ErrCapabilities) {
		t.Errorf("got %v", err)
	}
}

// A wrapper that only root can execute is replaced, although its content is right.
func TestInstallMode(t *testing.T) {
	r := newRoot(t)
	r.install("/usr/sbin", Options{})
	path := r.dir + "/usr/sbin/iptables-wrapper"
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	r.install("/usr/sbin", Options{})
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o755 {
		t.Errorf("got %v, %v", info, err)
	}
}

func TestInstallOtherArchitecture(t *testing.T) {
	const arm64 = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
	const s390x = "\x7fELF\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x16"
	other := arm64
	own, err := executable(layout.Names{Self: self.Started(marker)})
	if err != nil || architectureOf(own) == architectureOf([]byte(other)) {
		other = s390x
	}
	r := newRoot(t)
	r.file("/usr/sbin/xtables-nft-multi", other)
	r.file("/usr/sbin/xtables-legacy-multi", other)
	r.refuses("/usr/sbin", Options{Force: true}, ErrArchitecture, `such as "/usr/sbin/xtables-nft-multi"`)
	r.file("/usr/sbin/iptables-wrapper", other+marker)
	if got := r.install("/usr/sbin", Options{}); got[0] != "/usr/sbin/iptables-current -> iptables-wrapper" {
		t.Errorf("got %q", got)
	}
	if got, _ := os.ReadFile(r.dir + ownFile); string(got) != other+marker {
		t.Error("the wrapper of the other architecture was replaced")
	}

	// What runs here can run such programs, by an emulator for example.
	here := layout.Names{Self: r.n.Self}
	changed, err := Install(here, r.dir+"/usr/sbin", Options{Force: true})
	if err != nil || !slices.Equal(changed, []string{"copied the wrapper to " + r.dir + ownFile}) {
		t.Errorf("in the process' own tree: got %q, %v", changed, err)
	}
	r.file(ownFile, other+marker)

	// Its content is what counts, and what others have written does not.
	r.owned(ownFile, 0, 0, 0o757)
	r.refuses("/usr/sbin", Options{Force: true}, ErrArchitecture, "others can change the wrapper for it")
	r.owned(ownFile, 0, 0, 0o700)
	if got := r.install("/usr/sbin", Options{}); !slices.Equal(got, []string{"copied the wrapper to " + ownFile}) {
		t.Errorf("got %q", got)
	}
	if got, _ := os.ReadFile(r.dir + ownFile); string(got) != other+marker {
		t.Error("the wrapper of the other architecture was replaced by another one")
	}
}

func TestArchitecture(t *testing.T) {
	header := "\x7fELF\x02\x01\x01" + string(make([]byte, 9)) + "\x02\x00\x3e\x00"
	for _, test := range []struct{ header, want string }{
		{header, "\x02\x01\x3e\x00"},
		{header + "more", "\x02\x01\x3e\x00"},
		{header[:19], ""},
		{"#!/bin/sh\n          ", ""},
		{"", ""},
	} {
		if got := architectureOf([]byte(test.header)); got != test.want {
			t.Errorf("%q: got %q, want %q", test.header, got, test.want)
		}
	}
}

// A wrapper's file that others can rewrite is replaced, although its content is right.
func TestInstallRewritable(t *testing.T) {
	const stranger = 65534
	for doc, change := range map[string]func(root){
		"others can write it":     func(r root) { r.owned(ownFile, 0, 0, 0o757) },
		"a group can write it":    func(r root) { r.owned(ownFile, 0, stranger, 0o775) },
		"group root can write it": func(r root) { r.owned(ownFile, 0, 0, 0o775) },
		"it is another user's":    func(r root) { r.owned(ownFile, stranger, stranger, 0o755) },
	} {
		t.Run(doc, func(t *testing.T) {
			r := newRoot(t)
			r.install("/usr/sbin", Options{})
			change(r)
			got := r.install("/usr/sbin", Options{})
			if !slices.Equal(got, []string{"copied the wrapper to " + ownFile}) {
				t.Errorf("got %q", got)
			}
			st, err := (tree.Tree{}).Lstat(r.dir + ownFile)
			if err != nil || st.Uid != 0 || st.Mode != unix.S_IFREG|0o755 {
				t.Errorf("got %+v, %v", st, err)
			}
		})
	}
}

const ownFile = "/usr/sbin/iptables-wrapper"

// A file has what is expected only if that is so to its last byte.
func TestContentOf(t *testing.T) {
	expected := bytes.Repeat([]byte("0123456789"), 20000)
	last := len(expected) - 1
	for doc, content := range map[string][]byte{
		"the same":              expected,
		"the last byte differs": append(bytes.Clone(expected[:last]), 'x'),
		"one byte less":         expected[:last],
		"one byte more":         append(bytes.Clone(expected), 'x'),
		"nothing":               {},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, err := contentOf(f, int64(len(content)), expected)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: got %d bytes, %v", doc, len(got), err)
		}
		if shared := len(got) > 0 && &got[0] == &expected[0]; shared != (doc == "the same") {
			t.Errorf("%s: shared: %v", doc, shared)
		}
	}
}
