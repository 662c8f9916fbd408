// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The directory becomes read-only at each step: then all that follows fails, as after a kill. Each command leads to a
// program or to a wrapper that is complete.
func TestEachStepFails(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	_, content, err := runningFile()
	host.Check(t, err)
	finished := false
	for step := 0; !finished; step++ {
		directory := t.TempDir()
		host.Check(t, unix.Mount("none", directory, "tmpfs", 0, "mode=755"))
		fill(t, directory)
		d, err := link.Open(directory)
		host.Check(t, err)
		n, what := 0, ""
		d.Step = func(operation, name string) {
			if n == step {
				what = operation + " " + name
				host.Check(t, unix.Mount("", directory, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
			}
			n++
		}
		w := work{Dir: d, content: content}
		err = w.checkCommands()
		if err == nil {
			err = w.change()
		}
		d.Close()
		finished = what == ""
		if finished && err != nil || err != nil && !errors.Is(err, unix.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
		for _, name := range exec.Commands() {
			end, err := filepath.EvalSymlinks(directory + "/" + name)
			whole := filepath.Base(end) == "xtables-nft-multi" || filepath.Base(end) == "iptables-wrapper" &&
				string(host.Read(t, end)) == string(content)
			if err != nil || !whole {
				t.Errorf("%s: %s leads to %q, %v", what, name, end, err)
			}
		}
		host.Check(t, unix.Mount("", directory, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
		installs(t, directory, false)
		leadTo(t, directory, "iptables-wrapper")
		host.Check(t, unix.Unmount(directory, 0))
	}
}

// The file system is full: the wrapper is not cut short, and nothing is left.
func TestFull(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	directory := t.TempDir()
	host.Check(t, unix.Mount("none", directory, "tmpfs", 0, "mode=755,size=128k"))
	defer unix.Unmount(directory, 0)
	fill(t, directory)
	before := state(t, directory)
	_, _, err := Install(directory, false)
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if after := state(t, directory); after != before {
		t.Errorf("got %s\nwant %s", after, before)
	}
}
