// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// disk is a directory with both programs, a directory for the memory, and what actors find in them. Its content can be
// exchanged at any moment, so that one disk serves all explorations.
type disk struct {
	tb        testing.TB
	commands, // DIR, writable
	dev string // where the memory is, writable
	readOnly string // a path of DIR on a read-only mount, "" if there can be none
	file     string // the wrapper's file, to which names are hard links
	running  dir.ID
	lock     *os.File
	now      content
}

// content is what can change: the content of each link, by its path on the disk. asFile stands for a hard link to the wrapper.
type content map[string]string

const asFile = "(wrapper)"

func newDisk(tb testing.TB) *disk {
	tb.Helper()
	if os.Geteuid() != 0 {
		host.Cannot(tb, "make a memory, which is root's; run it as root")
	}
	top, err := os.MkdirTemp("/dev/shm", "layout") // in memory: hundreds of thousands of links are made
	if err != nil {
		top = tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(top) })
	d := &disk{tb: tb, commands: top + "/sbin", dev: top + "/dev", file: top + "/wrapper", now: content{}}
	host.Check(tb, os.Mkdir(d.commands, 0o755))
	host.Check(tb, os.Mkdir(d.dev, 0o755))
	for _, path := range []string{d.file, d.program(evidence.NFT), d.program(evidence.Legacy)} {
		host.Check(tb, os.WriteFile(path, nil, 0o755))
	}
	d.running, err = dir.IDAt(d.file)
	host.Check(tb, err)
	d.lock, err = os.Open(d.commands)
	host.Check(tb, err)
	tb.Cleanup(func() { d.lock.Close() })
	d.mountReadOnly()
	return d
}

func (d *disk) program(mode evidence.Mode) string { return d.commands + "/" + multiCall(mode) }

// mountReadOnly makes a mount of DIR that is attached nowhere: its path leads through a descriptor.
func (d *disk) mountReadOnly() {
	tree, err := unix.OpenTree(unix.AT_FDCWD, d.commands, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return
	}
	d.tb.Cleanup(func() { _ = unix.Close(tree) })
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err == nil {
		d.readOnly = fmt.Sprintf("/proc/self/fd/%d", tree)
	}
}

// set makes the disk have this content.
func (d *disk) set(want content) {
	for path := range d.now {
		if d.now[path] != want[path] {
			host.Check(d.tb, os.Remove(path))
		}
	}
	for path, target := range want {
		switch {
		case d.now[path] == target:
		case target == asFile:
			host.Check(d.tb, os.Link(d.file, path))
		default:
			host.Check(d.tb, os.Symlink(target, path))
		}
	}
	d.now = maps.Clone(want)
}

// changed notes what an actor has changed.
func (d *disk) changed(what content) { d.now.change(what) }

func (c content) change(what content) {
	for path, target := range what {
		c[path] = target
		if target == "" {
			delete(c, path)
		}
	}
}

// read returns the content, whatever an actor has made of it.
func (d *disk) read() content {
	clear(d.now)
	for _, directory := range []string{d.commands, d.dev} {
		entries, err := os.ReadDir(directory)
		host.Check(d.tb, err)
		for _, e := range entries {
			path := directory + "/" + e.Name()
			target, err := os.Readlink(path)
			if err != nil {
				target = asFile
			}
			if !strings.HasPrefix(e.Name(), "xtables-") {
				d.now[path] = target
			}
		}
	}
	return maps.Clone(d.now)
}

// holdLock takes the lock of DIR, or releases it.
func (d *disk) holdLock(hold bool) {
	how := unix.LOCK_UN
	if hold {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	host.Check(d.tb, unix.Flock(int(d.lock.Fd()), how))
}

// locked reports whether an actor has the lock.
func (d *disk) locked() bool {
	err := unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		d.holdLock(false)
	}
	return err != nil
}

// laid is a content in which the switch is at the wrapper, or the binary was copied over the six names.
func (d *disk) laid(laid bool) content {
	c := content{}
	for i, name := range exec.Names() {
		switch {
		case laid:
			c[d.commands+"/"+name] = Switch
		case i%2 == 0:
			c[d.commands+"/"+name] = asFile
		default:
			c[d.commands+"/"+name] = exec.Names()[i-1]
		}
	}
	if laid {
		c[d.commands+"/"+Switch] = Wrapper
		c[d.commands+"/"+Wrapper] = asFile
	}
	return c
}

// leads returns what a name runs: a backend, or "" for the wrapper.
func (c content) leads(directory, name string) (mode evidence.Mode, err error) {
	path := directory + "/" + name
	for range 4 {
		target, known := c[path]
		switch {
		case !known && storedMode(path) != "":
			return storedMode(path), nil
		case !known:
			return "", fmt.Errorf("%s: there is no %s", name, path)
		case target == asFile:
			return "", nil
		case filepath.IsAbs(target):
			path = target
		default:
			path = directory + "/" + target
		}
	}
	return "", fmt.Errorf("%s leads round in a circle", name)
}

// wrong returns what must never be: a name that leads nowhere, two backends, or a file that nobody expects.
func (d *disk) wrong(c content) error {
	backend := evidence.Mode("")
	for _, name := range exec.Names() {
		mode, err := c.leads(d.commands, name)
		switch {
		case err != nil:
			return err
		case mode != "" && backend == mode.Other():
			return fmt.Errorf("%s runs %s, another name %s", name, mode, backend)
		case mode != "":
			backend = mode
		}
	}
	for path := range c {
		name := strings.TrimSuffix(filepath.Base(path), ".new")
		if !slices.Contains(append(exec.Names(), Switch, Wrapper, memory.Name), name) {
			return fmt.Errorf("%s is there", path)
		}
	}
	return nil
}

// String lists the content.
func (c content) String() string {
	text := ""
	for _, path := range slices.Sorted(maps.Keys(c)) {
		text += fmt.Sprintf("%s -> %s\n", path, c[path])
	}
	return text
}
