// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) { host.MainOfPackage(m) }

// image makes a directory as Alpine has it: the six commands are links to a multi-call program.
func image(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	host.Check(t, os.Chmod(directory, 0o755))
	fill(t, directory)
	return directory
}

func fill(t *testing.T, directory string) {
	t.Helper()
	for _, program := range []string{"xtables-nft-multi", "xtables-legacy-multi"} {
		host.Check(t, os.WriteFile(directory+"/"+program, []byte("#!/bin/sh\n"), 0o755))
	}
	for _, name := range exec.Commands() {
		host.Check(t, os.Symlink("xtables-nft-multi", directory+"/"+name))
	}
}

// installs installs without an error.
func installs(t *testing.T, directory string, force bool) (changes, remarks []string) {
	t.Helper()
	changes, remarks, err := Install(directory, force)
	if err != nil {
		t.Fatalf("%v, after %q", err, changes)
	}
	return changes, remarks
}

// leadTo checks where the six commands lead, through the switch.
func leadTo(t *testing.T, directory, file string) {
	t.Helper()
	d, err := link.Open(directory)
	host.Check(t, err)
	defer d.Close()
	for _, n := range look.In(d) {
		if filepath.Base(n.ResolvesTo) != file || n.Switch == "" {
			t.Errorf("%s leads to %q, through a switch in %q (%v); want %s",
				n.Name, n.ResolvesTo, n.Switch, n.Err, file)
		}
	}
}

// state is what directories have of iptables.
func state(t *testing.T, directories ...string) string {
	t.Helper()
	var b strings.Builder
	for _, directory := range directories {
		entries, err := os.ReadDir(directory)
		host.Check(t, err)
		for _, entry := range entries {
			// update-alternatives leaves such links behind when it fails.
			if !strings.Contains(entry.Name(), "tables") || strings.HasSuffix(entry.Name(), ".dpkg-tmp") {
				continue
			}
			var st unix.Stat_t
			host.Check(t, unix.Lstat(directory+"/"+entry.Name(), &st))
			content, _ := os.Readlink(directory + "/" + entry.Name())
			fmt.Fprintln(&b, directory, entry.Name(), st.Ino, st.Mode, st.Size, st.Mtim, content)
		}
	}
	return b.String()
}

// changesNothing installs once more.
func changesNothing(t *testing.T, directories ...string) {
	t.Helper()
	before := state(t, directories...)
	changes, _ := installs(t, directories[0], false)
	if len(changes) != 1 || !strings.HasPrefix(changes[0], "nothing to do: ") {
		t.Errorf("installed again: got %q", changes)
	}
	if after := state(t, directories...); after != before {
		t.Errorf("installed again: got %s\nwant %s", after, before)
	}
}

func TestInstall(t *testing.T) {
	directory := image(t)
	defer unix.Umask(unix.Umask(0o077))
	want := []string{
		"wrote " + directory + "/iptables-wrapper",
		directory + "/iptables-current -> iptables-wrapper",
		directory + "/iptables, iptables-save, iptables-restore, ip6tables, ip6tables-save, ip6tables-restore -> " +
			"iptables-current",
	}
	changes, _ := installs(t, directory, false)
	if !slices.Equal(changes, want) {
		t.Errorf("got %q", changes)
	}
	leadTo(t, directory, "iptables-wrapper")
	running, err := os.Executable()
	host.Check(t, err)
	if string(host.Read(t, directory+"/iptables-wrapper")) != string(host.Read(t, running)) {
		t.Error("the wrapper is not the running file")
	}
	info, err := os.Lstat(directory + "/iptables-wrapper")
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	changesNothing(t, directory)

	// A backend is stored, or the stored program is gone.
	for _, content := range []string{
		"xtables-legacy-multi", "/usr/sbin/xtables-legacy-multi", directory + "/iptables-wrapper",
	} {
		host.Check(t, os.Remove(directory+"/iptables-current"))
		host.Check(t, os.Symlink(content, directory+"/iptables-current"))
		_ = os.Remove(directory + "/xtables-legacy-multi")
		changes, _ = installs(t, directory, false)
		if !slices.Equal(changes, want[1:2]) {
			t.Errorf("%s: got %q", content, changes)
		}
		leadTo(t, directory, "iptables-wrapper")
		changesNothing(t, directory)
	}
}

// A directory is replaced by nobody. What was done until then runs the wrapper.
func TestDirectoryInTheWay(t *testing.T) {
	directory := image(t)
	host.Check(t, os.Remove(directory+"/ip6tables-save"))
	host.Check(t, os.Mkdir(directory+"/ip6tables-save", 0o755))
	_, _, err := Install(directory, true)
	if !errors.Is(err, unix.EISDIR) {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"iptables", "ip6tables-restore"} {
		end, err := filepath.EvalSymlinks(directory + "/" + name)
		if err != nil || filepath.Base(end) != "iptables-wrapper" && filepath.Base(end) != "xtables-nft-multi" {
			t.Errorf("%s: got %q, %v", name, end, err)
		}
	}
}
