// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What is in the place of the wrapper, and whether a new file takes it.
func TestWrapperFile(t *testing.T) {
	_, content, err := runningFile()
	host.Check(t, err)
	for _, test := range []struct {
		doc  string
		put  func(path string) error
		anew bool
	}{
		{"nothing", os.Remove, true},
		{"what install put there", func(string) error { return nil }, false},
		{"read-only", func(path string) error { return os.Chmod(path, 0o555) }, false},
		{"other bytes", func(path string) error { return os.WriteFile(path, []byte("other"), 0o755) }, true},
		{"not executable by all", func(path string) error { return os.Chmod(path, 0o750) }, true},
		{"writable", func(path string) error { return os.Chmod(path, 0o775) }, true},
		{"set-user-ID", func(path string) error { return unix.Chmod(path, 0o4755) }, true},
		{"another user's", func(path string) error {
			return os.Chown(path, 1, 1)
		}, true},
		{"a link to a copy", func(path string) error {
			copied := path + ".copy"
			return errors.Join(os.Remove(path), os.WriteFile(copied, content, 0o755), os.Symlink(copied, path))
		}, true},
		{"a link to iptables", func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("xtables-nft-multi", path))
		}, true},
		{"a FIFO", func(path string) error {
			return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o755))
		}, true},
	} {
		t.Run(test.doc, func(t *testing.T) {
			if test.doc == "another user's" {
				host.NeedsRoot(t, "give a file away")
			}
			directory := image(t)
			installs(t, directory, false)
			path := directory + "/iptables-wrapper"
			host.Check(t, test.put(path))
			changes, _ := installs(t, directory, false)
			anew := slices.Contains(changes, "wrote "+path)
			if anew != test.anew {
				t.Errorf("got %q", changes)
			}
			info, err := os.Lstat(path)
			host.Check(t, err)
			if anew && info.Mode() != 0o755 || string(host.Read(t, path)) != string(content) {
				t.Errorf("got %v", info.Mode())
			}
			if string(host.Read(t, directory+"/xtables-nft-multi")) != "#!/bin/sh\n" {
				t.Error("iptables' program was changed")
			}
			leadTo(t, directory, "iptables-wrapper")
		})
	}
}

// What may be in the place of a command, and what is refused before anything is changed.
func TestNames(t *testing.T) {
	_, content, err := runningFile()
	host.Check(t, err)
	for _, test := range []struct {
		doc     string
		put     func(directory, path string) error
		foreign bool
	}{
		{doc: "nothing", put: func(string, string) error { return nil }},
		{doc: "a hard link to iptables", put: func(directory, path string) error {
			return os.Link(directory+"/xtables-legacy-multi", path)
		}, foreign: true},
		{doc: "a broken link", put: func(_, path string) error { return os.Symlink("gone", path) }},
		{doc: "a link to the wrapper", put: func(directory, path string) error {
			return errors.Join(os.WriteFile(directory+"/iptables-wrapper", []byte("v3"), 0o755),
				os.Symlink("iptables-wrapper", path))
		}},
		{doc: "a copy of the wrapper", put: func(_, path string) error { return os.WriteFile(path, content, 0o755) }},
		{doc: "a link through another switch", put: func(directory, path string) error {
			other := directory + "/other"
			return errors.Join(os.Mkdir(other, 0o755), os.Symlink("../xtables-nft-multi", other+"/iptables-current"),
				os.Symlink("other/iptables-current", path))
		}},
		{doc: "a file", put: func(_, path string) error {
			return os.WriteFile(path, []byte("mine"), 0o755)
		}, foreign: true},
		{doc: "a link to another program", put: func(_, path string) error {
			return os.Symlink("/bin/true", path)
		}, foreign: true},
		{doc: "a loop", put: func(_, path string) error {
			return os.Symlink("ip6tables-save", path)
		}, foreign: true},
		{doc: "a foreign switch", put: func(directory, _ string) error {
			return os.Symlink("/bin/true", directory+"/iptables-current")
		}, foreign: true},
		{doc: "a file in the place of the switch", put: func(directory, _ string) error {
			return os.WriteFile(directory+"/iptables-current", []byte("mine"), 0o755)
		}, foreign: true},
	} {
		t.Run(test.doc, func(t *testing.T) {
			directory := image(t)
			path := directory + "/ip6tables-save"
			host.Check(t, os.Remove(path))
			host.Check(t, test.put(directory, path))
			before := state(t, directory)
			changes, _, err := Install(directory, false)
			if test.foreign != errors.Is(err, link.ErrForeign) || !test.foreign && err != nil {
				t.Fatalf("got %q, %v", changes, err)
			}
			if after := state(t, directory); test.foreign && after != before {
				t.Errorf("got %s\nwant %s", after, before)
			}
			installs(t, directory, true)
			leadTo(t, directory, "iptables-wrapper")
		})
	}
}
