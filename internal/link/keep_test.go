// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Another call records and stores the other backend while this one asks: this one runs that, too. The switch is read
// before the record, because other calls write the record first. A certain call finds out when it has the lock.
func TestOtherCallKeeps(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	for at, certain := range map[string]bool{"readlink": false, "lock": true} {
		top := t.TempDir()
		grow(t, top, "iptables-wrapper", "xtables-nft-multi", "xtables-legacy-multi",
			"iptables-current -> iptables-wrapper")
		record, err := OpenRecord()
		host.Check(t, err)
		d := open(t, top)
		d.Running, d.Exe = Wrapper, top+"/iptables-wrapper"
		d.Step = func(operation, _ string) {
			if operation == at {
				d.Step = nil
				host.Check(t, record.Put(detect.Legacy))
				host.Check(t, open(t, top).Replace("xtables-legacy-multi", Switch))
			}
		}
		got := Keep(d, record, detect.NFT, top+"/xtables-nft-multi", certain)
		if got != detect.Legacy {
			t.Errorf("certain: %v, it runs %s", certain, got)
		}
		got = Keep(nil, record, detect.NFT, top+"/xtables-nft-multi", false)
		if got != detect.Legacy {
			t.Errorf("without DIR, a guess runs %s", got)
		}
		host.Check(t, record.Remove())
	}
}

// On a read-only root, a call does not take the lock.
func TestReadOnly(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	top := t.TempDir()
	grow(t, top, "iptables-wrapper", "xtables-nft-multi", "iptables-current -> iptables-wrapper")
	host.Check(t, unix.Mount(top, top, "", unix.MS_BIND, ""))
	defer unix.Unmount(top, unix.MNT_DETACH)
	host.Check(t, unix.Mount("", top, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	d := open(t, top)
	d.Running, d.Exe = Wrapper, top+"/iptables-wrapper"
	d.Step = func(operation, name string) {
		if operation != "lstat" && operation != "stat" && operation != "readlink" {
			t.Errorf("%s %s", operation, name)
		}
	}
	Keep(d, Record{}, detect.NFT, top+"/xtables-nft-multi", true)
}

// What took the name of the running file between the question and the lock is not the wrapper, and is left alone.
func TestAdoptsOnlyItself(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "iptables", "running = iptables")
	d := open(t, top)
	d.Running, d.Exe = "iptables", top+"/running"
	host.Check(t, os.Remove(top+"/iptables"))
	grow(t, top, "iptables")
	host.Check(t, d.adopt())
	want := "iptables, iptables-current -> iptables-wrapper, iptables-wrapper, running"
	if got := list(t, top); got != want || !d.isRunning(Wrapper) {
		t.Errorf("got %s", got)
	}
}

// What a switch may contain, and which backend that is.
func TestStored(t *testing.T) {
	for _, test := range []struct {
		content string
		foreign bool
		want    detect.Backend
	}{
		{content: "/opt/bin/iptables-wrapper"},
		{content: "/usr/sbin/xtables-legacy-multi", want: detect.Legacy},
		{content: "iptables-nft", foreign: true},
		{content: "iptables-wrapper/other", foreign: true},
	} {
		directory := t.TempDir()
		grow(t, directory, "iptables-current -> "+test.content)
		got, err := open(t, directory).Stored()
		if got != test.want || errors.Is(err, ErrForeign) != test.foreign || !test.foreign && err != nil {
			t.Errorf("%s: got %q, %v", test.content, got, err)
		}
	}
}

// What the switch contains for a program: a name only if the program's file is beside the switch.
func TestContentFor(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "sbin/", "sbin/xtables-nft-multi", "sbin/iptables-nft -> xtables-nft-multi", "other/",
		"other/xtables-nft-multi", "linked/", "linked/xtables-nft-multi = sbin/xtables-nft-multi")
	d := open(t, top+"/sbin")
	for program, want := range map[string]string{
		"/sbin/iptables-nft":       "xtables-nft-multi",
		"/other/xtables-nft-multi": top + "/other/xtables-nft-multi",
		// The hard link in DIR could be replaced by a package, and the program that was found stays.
		"/linked/xtables-nft-multi": top + "/linked/xtables-nft-multi",
	} {
		got, err := d.ContentFor(detect.NFT, top+program)
		if got != want || err != nil {
			t.Errorf("%s: got %q, %v", program, got, err)
		}
	}
}

// A /dev that is not as runtimes make it: the script host-dev has a host's.
func TestIsContainers(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	for _, test := range []struct {
		kind, options string
		want          bool
	}{
		{kind: "tmpfs", options: "mode=755", want: true},
		{kind: "tmpfs", options: "mode=1777"},
		{kind: "tmpfs", options: "mode=775"},
		{kind: "tmpfs", options: "mode=755,uid=1000"},
		{kind: "ramfs", options: "mode=755"},
	} {
		directory := t.TempDir()
		host.Check(t, unix.Mount("none", directory, test.kind, 0, test.options))
		host.Check(t, os.Symlink("pts/ptmx", directory+"/ptmx"))
		d, err := Open(directory)
		host.Check(t, err)
		if d.isContainers() != test.want {
			t.Errorf("%+v: got %t", test, !test.want)
		}
		d.Close()
		host.Check(t, unix.Unmount(directory, unix.MNT_DETACH))
	}
}
