// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each condition of a container's own /dev.
func TestIsContainers(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	link := func(directory string) error { return os.Symlink("pts/ptmx", directory+"/ptmx") }
	for _, test := range []struct {
		doc, options string
		make         func(directory string) error
		want         bool
	}{
		{doc: "as runtimes make it", options: "mode=755", make: link, want: true},
		{doc: "no ptmx", options: "mode=755", make: func(string) error { return nil }},
		{doc: "ptmx is a device, as on a host", options: "mode=755", make: func(directory string) error {
			return unix.Mknod(directory+"/ptmx", unix.S_IFCHR|0o666, int(unix.Mkdev(5, 2)))
		}},
		{doc: "ptmx is a device that was mounted there", options: "mode=755", make: func(directory string) error {
			return errors.Join(os.WriteFile(directory+"/ptmx", nil, 0o666),
				unix.Mount("/dev/pts/ptmx", directory+"/ptmx", "", unix.MS_BIND, ""))
		}},
		{doc: "writable by all", options: "mode=1777", make: link},
		{doc: "writable by the group", options: "mode=775", make: link},
		{doc: "another user's", options: "mode=755,uid=1000", make: link},
	} {
		directory := t.TempDir()
		host.Check(t, unix.Mount("none", directory, "tmpfs", 0, test.options))
		host.Check(t, test.make(directory))
		d, err := Open(directory)
		if got := err == nil && d.isContainers(); got != test.want {
			t.Errorf("%s: got %t, %v", test.doc, got, err)
		}
		if err == nil {
			d.Close()
		}
		host.Check(t, unix.Unmount(directory, unix.MNT_DETACH))
	}
	host.Check(t, link("/usr/sbin"))
	if open(t, "/usr/sbin").isContainers() {
		t.Error("no tmpfs, and it is a container's own")
	}
}

func openRecord(t *testing.T) Record {
	t.Helper()
	r, err := OpenRecord()
	host.Check(t, err)
	return r
}

func pathOf(r Record) string { return r.Dev.Join(r.Name) }

// inDirectory is a record in a directory, whatever kind of directory it is.
func inDirectory(t *testing.T, directory string) Record {
	t.Helper()
	return Record{Dev: open(t, directory), Name: "record"}
}

// What is recorded, by whom, and what a call makes of it.
func TestRecord(t *testing.T) {
	host.NeedsRoot(t, "give a file away")
	for _, test := range []struct {
		doc     string
		make    func(path string) error
		reads   detect.Backend
		certain bool // the answer, which is nft
		runs    detect.Backend
		records string
	}{
		{
			doc: "nothing", make: func(string) error { return nil },
			runs: detect.NFT, records: "nft",
		},
		{
			doc: "the other, a guess", make: func(path string) error { return os.Symlink("legacy", path) },
			reads: detect.Legacy, runs: detect.Legacy, records: "legacy",
		},
		{
			doc: "the other, certain", make: func(path string) error { return os.Symlink("legacy", path) },
			reads: detect.Legacy, certain: true, runs: detect.NFT, records: "nft",
		},
		{
			doc: "the other, certain, after a kill", reads: detect.Legacy,
			make: func(path string) error {
				return errors.Join(os.Symlink("legacy", path), os.Symlink("legacy", path+".new"))
			},
			certain: true, runs: detect.NFT, records: "nft",
		},
		{
			doc: "another user's, a guess", make: func(path string) error {
				return errors.Join(os.Symlink("legacy", path), os.Lchown(path, 1000, 0))
			},
			runs: detect.NFT, records: "legacy",
		},
		{
			doc: "another user's, certain", make: func(path string) error {
				return errors.Join(os.Symlink("legacy", path), os.Lchown(path, 1000, 0))
			},
			certain: true, runs: detect.NFT, records: "nft",
		},
		{
			doc: "neither backend", make: func(path string) error { return os.Symlink("legacy ", path) },
			runs: detect.NFT, records: "legacy ",
		},
		{
			doc: "a file", make: func(path string) error { return os.WriteFile(path, []byte("legacy"), 0o644) },
			runs: detect.NFT,
		},
		{
			doc: "a directory", make: func(path string) error { return os.Mkdir(path, 0o755) },
			certain: true, runs: detect.NFT,
		},
	} {
		directory := t.TempDir()
		r := inDirectory(t, directory)
		host.Check(t, test.make(pathOf(r)))
		if got := r.Read(); got != test.reads {
			t.Errorf("%s: read %q", test.doc, got)
		}
		got := r.keep(detect.NFT, test.certain)
		if got != test.runs || content(pathOf(r)) != test.records || strings.Contains(list(t, directory), ".new") {
			t.Errorf("%s: runs %q, %s", test.doc, got, list(t, directory))
		}
	}
}

// What cannot be removed is an error only if it is still there.
func TestRemoveRecord(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	directory := t.TempDir()
	r := inDirectory(t, directory)
	fixed := inDirectory(t, readOnly(t, directory))
	host.Check(t, r.Remove())
	host.Check(t, fixed.Remove())
	host.Check(t, os.Symlink("nft", pathOf(r)))
	err := fixed.Remove()
	if !errors.Is(err, unix.EROFS) {
		t.Errorf("read-only: got %v", err)
	}
	host.Check(t, r.Remove())
	if got := list(t, directory); got != "" {
		t.Errorf("got %s", got)
	}
}
