// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xtables

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// fakeDir makes a directory with these files: "path=content". A path that ends with a slash is a directory, and a
// content that begins with "->" a symbolic link.
func fakeDir(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		name, content, _ := strings.Cut(file, "=")
		path := filepath.Join(dir, name)
		host.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		target, isLink := strings.CutPrefix(content, "->")
		switch {
		case isLink:
			host.Check(t, os.Symlink(target, path))
		case strings.HasSuffix(name, "/"):
			host.Check(t, os.Mkdir(path, 0o755))
		default:
			host.Check(t, os.WriteFile(path, []byte(content), 0o644))
		}
	}
	return dir
}

// The list of tables is the calling thread's. Before Linux 3.17, where thread-self is missing, it is that of the first
// thread.
func TestListedBelow(t *testing.T) {
	const (
		list    = "thread-self/net/ip_tables_names="
		list6   = "thread-self/net/ip6_tables_names="
		dev     = "thread-self/net/dev="
		speaks6 = "thread-self/net/if_inet6="
		before  = "self/net/ip_tables_names="
		devOld  = "self/net/dev="
	)
	for _, test := range []struct {
		doc   string
		files []string
		leads bool
		ipv6  bool
		want  string
		err   error

		loaded bool // also if a table is wanted
	}{
		{doc: "no table", loaded: true, files: []string{list, dev}},
		{doc: "a table", files: []string{list + "mangle\n", dev}, want: "mangle"},
		{doc: "several tables", files: []string{list + "security\nraw\nnat\n", dev}, want: "security raw nat"},
		{doc: "IPv6", files: []string{list + "raw\n", list6 + "mangle\n", dev, speaks6}, ipv6: true, want: "mangle"},
		{
			doc:   "before Linux 5.15 with IPv6 disabled",
			files: []string{list6 + "mangle\n", dev}, ipv6: true, loaded: true,
		},
		{doc: "a list that may be cut off", files: []string{list + strings.Repeat("raw\n", 128), dev}, err: unix.EFBIG},
		{doc: "only the other family", files: []string{list6 + "mangle\n", dev}},
		{doc: "not loaded", files: []string{dev}},
		{doc: "not loaded, IPv6", files: []string{list + "raw\n", dev}, ipv6: true},
		{doc: "a thread's own, not the first one's", files: []string{dev, before + "mangle\n", devOld}, leads: true},
		{doc: "before Linux 3.17", files: []string{before + "mangle\n", devOld}, leads: true, want: "mangle"},
		{doc: "before Linux 3.17, not loaded", files: []string{devOld}, leads: true},
		{doc: "before Linux 3.17, another thread", files: []string{before + "mangle\n", devOld}, err: ErrHidden},
		{doc: "no /proc", leads: true, err: ErrHidden},
		{doc: "no /proc, another thread", err: ErrHidden},
		{doc: "no network in /proc", files: []string{"thread-self/", "self/"}, leads: true, err: ErrHidden},
		{doc: "not a file", files: []string{"thread-self/net/ip_tables_names/=", dev}, err: unix.EISDIR},
		{
			doc:   "net/dev cannot be looked for",
			files: []string{"thread-self/net/dev=->dev", before, devOld}, leads: true, err: unix.ELOOP,
		},
	} {
		got, loaded, err := listed(fakeDir(t, test.files...), test.leads, test.ipv6)
		if strings.Join(got, " ") != test.want || loaded != (test.loaded || test.want != "") ||
			!errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%s: got %q, loaded %v, %v, want %q, %v", test.doc, got, loaded, err, test.want, test.err)
		}
	}
}

// A list that this user may not read is not an empty one.
func TestListedNotPermitted(t *testing.T) {
	host.Netns(t)
	proc := fakeDir(t, "thread-self/net/ip_tables_names=mangle\n", "thread-self/net/dev=", "self/net/ip_tables_names=",
		"self/net/dev=")
	host.Check(t, os.Chmod(proc+"/thread-self/net/ip_tables_names", 0))
	host.DropCapability(t, unix.CAP_DAC_OVERRIDE)
	host.DropCapability(t, unix.CAP_DAC_READ_SEARCH)
	got, loaded, err := listed(proc, true, false)
	if got != nil || loaded || !errors.Is(err, unix.EACCES) {
		t.Errorf("got %q, %v", got, err)
	}
}

// The network namespace of the calling thread is asked about.
func TestListed(t *testing.T) {
	host.Netns(t)
	check := func(ipv6 bool, want ...string) {
		t.Helper()
		got, loaded, err := Listed(ipv6)
		slices.Sort(got)
		if !slices.Equal(got, want) || !loaded || err != nil {
			t.Errorf("ipv6 %v: got %q, %v, want %q", ipv6, got, err, want)
		}
	}
	check(false)
	check(true)
	host.Run(t, "iptables-legacy", "-w", "-t", "mangle", "-N", hint)
	host.Run(t, "iptables-legacy", "-w", "-t", "raw", "-S")
	host.Run(t, "ip6tables-legacy", "-w", "-S")
	check(false, "mangle", "raw")
	check(true, "filter")
	host.Netns(t)
	check(false)
	check(true)
}

// A module that iptables-legacy could load is in the list of this kernel's release, compressed or not.
func TestLoadable(t *testing.T) {
	var name unix.Utsname
	host.Check(t, unix.Uname(&name))
	list := unix.ByteSliceToString(name.Release[:]) + "/modules.dep="
	const needs = ": kernel/net/netfilter/x_tables.ko\n"
	for _, test := range []struct {
		file string
		want bool
	}{
		{list + "kernel/net/ipv4/netfilter/ip_tables.ko" + needs, true},
		{list + "kernel/a.ko:\nkernel/net/ipv4/netfilter/ip_tables.ko.xz" + needs, true},
		{list + "kernel/net/ipv6/netfilter/ip6_tables.ko.zst" + needs, false},
		{list + "kernel/net/ipv4/netfilter/iptable_nat.ko" + needs, false},
		{list, false},
		{"1.2.3/modules.dep=kernel/net/ipv4/netfilter/ip_tables.ko" + needs, false},
		{unix.ByteSliceToString(name.Release[:]) + "=a file", false},
	} {
		got, err := loadable(fakeDir(t, test.file))
		if got != test.want || err != nil {
			t.Errorf("%q: got %v, %v", test.file, got, err)
		}
	}
	got, err := loadable(t.TempDir() + "/none")
	if got || err != nil {
		t.Errorf("no modules: got %v, %v", got, err)
	}
	got, err = loadable(fakeDir(t, list[:len(list)-1]+"/="))
	if got || !errors.Is(err, unix.EISDIR) {
		t.Errorf("not a file: got %v, %v", got, err)
	}
}
