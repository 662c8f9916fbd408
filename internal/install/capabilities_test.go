// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// cap_net_admin,cap_net_raw=ep and others, as they are stored.
const (
	allMore     = "\xff\xff\xff\xff\xff\xff\xff\xff"
	noMore      = "\x00\x00\x00\x00\x00\x00\x00\x00"
	netAdminRaw = "\x01\x00\x00\x02\x00\x30\x00\x00" + "\x00\x00\x00\x00" + noMore
	netAdmin    = "\x01\x00\x00\x02\x00\x10\x00\x00" + "\x00\x00\x00\x00" + noMore
	setUID      = "\x01\x00\x00\x02\x80\x00\x00\x00" + "\x00\x00\x00\x00" + noMore
)

func (r root) setCapabilities(program, value string) {
	r.Helper()
	if err := unix.Setxattr(r.dir+"/usr/sbin/"+program, capabilityAttribute, []byte(value), 0); err != nil {
		host.Cannot(r, "set file capabilities: %v", err)
	}
}

func (r root) hasCapabilities(program, want string) {
	r.Helper()
	if got, err := Capabilities(r.n.Tree, "/usr/sbin/"+program); err != nil || got != want {
		r.Errorf("%s has %q, %v, want %q", program, got, err, want)
	}
}

func (r root) owned(path string, uid, gid int, mode os.FileMode) {
	r.Helper()
	if err := os.Lchown(r.dir+path, uid, gid); err != nil {
		host.Cannot(r, "give a file away: %v", err)
	}
	if err := os.Chmod(r.dir+path, mode); err != nil {
		r.Fatal(err)
	}
}

// Of the programs' capabilities, those that iptables needs are copied.
func TestNeeded(t *testing.T) {
	for _, test := range []struct{ doc, value, want string }{
		{"as they should be", netAdminRaw, netAdminRaw},
		{"one of them", netAdmin, netAdmin},
		{"others beside them", "\x01\x00\x00\x02" + "\xff\xff\xff\xff" + "\xff\xff\xff\xff" + allMore,
			"\x01\x00\x00\x02\x00\x30\x00\x00" + "\x00\x30\x00\x00" + noMore},
		{"inheritable", "\x00\x00\x00\x02\x00\x00\x00\x00" + "\x00\x10\x00\x00" + noMore,
			"\x00\x00\x00\x02\x00\x00\x00\x00" + "\x00\x10\x00\x00" + noMore},
		{"others alone", setUID, ""},
		{"above 31", "\x01\x00\x00\x02\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x30\x00\x00\x00\x30\x00\x00", ""},
		{"version 1", "\x01\x00\x00\x01" + "\x80\x30\x00\x00" + "\x00\x00\x00\x00",
			"\x01\x00\x00\x01" + "\x00\x30\x00\x00" + "\x00\x00\x00\x00"},
		{"version 3, with its root", netAdminRaw + "\xe8\x03\x00\x00", netAdminRaw + "\xe8\x03\x00\x00"},
		{"none", "", ""},
		{"a version to come", netAdminRaw + "\x00\x00\x00\x00\x00\x00\x00\x00", ""},
	} {
		if got := needed([]byte(test.value)); got != test.want {
			t.Errorf("%s: got %x, want %x", test.doc, got, test.want)
		}
	}
}

func TestInstallCapabilities(t *testing.T) {
	r := newRoot(t)
	r.install("/usr/sbin", Options{})
	r.setCapabilities("xtables-nft-multi", netAdminRaw)
	r.hasCapabilities("iptables-wrapper", "")
	copied := "copied the wrapper to /usr/sbin/iptables-wrapper"
	gave := "gave /usr/sbin/iptables-wrapper the file capabilities of iptables' programs"
	if got := r.install("/usr/sbin", Options{}); !slices.Equal(got, []string{copied, gave}) {
		t.Errorf("got %q", got)
	}
	r.hasCapabilities("iptables-wrapper", netAdminRaw)
	r.setCapabilities("xtables-legacy-multi", netAdmin)
	r.refuses("/usr/sbin", Options{}, ErrCapabilities, "differ")
	r.setCapabilities("xtables-legacy-multi", netAdminRaw)
	r.setCapabilities("iptables-wrapper", netAdmin)
	// An older one. Writing to a file drops its capabilities.
	r.file("/usr/sbin/iptables-wrapper", "\x7fELF"+marker+marker)
	if got := r.install("/usr/sbin", Options{}); !slices.Contains(got, gave) {
		t.Errorf("got %q", got)
	}
	r.hasCapabilities("iptables-wrapper", netAdminRaw)

	// Under another name, somebody else's file system may have the same file.
	if err := os.Link(r.dir+"/usr/sbin/iptables-wrapper", r.dir+"/other"); err != nil {
		t.Fatal(err)
	}
	if got := r.install("/usr/sbin", Options{}); !slices.Equal(got, []string{copied, gave}) {
		t.Errorf("a file with two names: got %q", got)
	}
}

// Capabilities that iptables does not need are not copied. That programs have different ones of these is no obstacle.
func TestInstallOtherCapabilities(t *testing.T) {
	r := newRoot(t)
	r.setCapabilities("xtables-nft-multi", setUID)
	r.install("/usr/sbin", Options{})
	r.hasCapabilities("iptables-wrapper", "")
	r.setCapabilities("xtables-nft-multi", "\x01\x00\x00\x02\x80\x30\x00\x00"+"\x00\x00\x00\x00"+noMore)
	r.setCapabilities("xtables-legacy-multi", netAdminRaw)
	r.install("/usr/sbin", Options{})
	r.hasCapabilities("iptables-wrapper", netAdminRaw)
}

// Capabilities are copied from root's files alone, in directories that only root can change. Not even force does more.
func TestInstallCapabilitiesOfOthers(t *testing.T) {
	const stranger = 65534
	for doc, prepare := range map[string]func(root){
		"a user's program":     func(r root) { r.owned("/usr/sbin/xtables-nft-multi", stranger, 0, 0o755) },
		"others can write it":  func(r root) { r.owned("/usr/sbin/xtables-nft-multi", 0, 0, 0o757) },
		"a group can write it": func(r root) { r.owned("/usr/sbin/xtables-nft-multi", 0, stranger, 0o775) },
		"a user's directory":   func(r root) { r.owned("/usr/sbin", stranger, 0, 0o755) },
		"an open directory":    func(r root) { r.owned("/usr/sbin", 0, 0, 0o777) },
		"a user's parent":      func(r root) { r.owned("/usr", stranger, 0, 0o755) },
		"a user's root":        func(r root) { r.owned("", stranger, stranger, 0o755) },
		"programs elsewhere, and a user's directory": func(r root) {
			r.file("/sbin/xtables-nft-multi", "#!/bin/sh\n")
			r.file("/sbin/xtables-legacy-multi", "#!/bin/sh\n")
			for _, file := range []string{"/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"} {
				if err := os.Remove(r.dir + file); err != nil {
					r.Fatal(err)
				}
			}
			r.setCapabilities("../../sbin/xtables-nft-multi", netAdminRaw)
			r.owned("/usr/sbin", stranger, 0, 0o755)
		},
	} {
		t.Run(doc, func(t *testing.T) {
			r := newRoot(t)
			prepare(r)
			if _, err := os.Stat(r.dir + "/usr/sbin/xtables-nft-multi"); err == nil {
				r.setCapabilities("xtables-nft-multi", netAdminRaw) // chown(2) would have dropped them
			}
			r.refuses("/usr/sbin", Options{Force: true}, ErrCapabilities, "users other than root can change")
		})
	}
}

// A file gets capabilities by the descriptor that it was created with, and only if nobody else has a hand in it.
func TestSetCapabilities(t *testing.T) {
	r := newRoot(t)
	create := func(name string) *os.File {
		t.Helper()
		f, err := r.n.Tree.Create("/usr/sbin/" + name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	f := create("first")
	r.file("/usr/sbin/another", "")
	if err := os.Rename(r.dir+"/usr/sbin/another", r.dir+"/usr/sbin/first"); err != nil {
		t.Fatal(err)
	}
	if err := setCapabilities(f, "/usr/sbin/first", netAdminRaw); !errors.Is(err, ErrCapabilities) {
		t.Errorf("a file that somebody has replaced: got %v", err)
	}
	r.hasCapabilities("first", "")

	f = create("second")
	if err := os.Link(r.dir+"/usr/sbin/second", r.dir+"/usr/sbin/name"); err != nil {
		t.Fatal(err)
	}
	if err := setCapabilities(f, "/usr/sbin/second", netAdminRaw); !errors.Is(err, ErrCapabilities) {
		t.Errorf("a file with two names: got %v", err)
	}
	r.hasCapabilities("second", "")

	f = create("third")
	r.owned("/usr/sbin/third", 65534, 0, 0o755)
	if err := setCapabilities(f, "/usr/sbin/third", netAdminRaw); !errors.Is(err, ErrCapabilities) {
		t.Errorf("another user's file: got %v", err)
	}
	r.hasCapabilities("third", "")

	if err := setCapabilities(create("fourth"), "/usr/sbin/fourth", netAdminRaw); err != nil {
		host.Cannot(t, "set file capabilities: %v", err)
	}
	r.hasCapabilities("fourth", netAdminRaw)
}
