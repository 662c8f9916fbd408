// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
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

// content is what can change: the content of each link, by slot. asFile stands for a hard link to the wrapper.
type content [2 * (numberOfNames + 3)]string

// The slots: a name, then its temporary link.
const numberOfNames = 6

var slotNames = append(exec.Names(), Wrapper, Switch, memory.Name)

// slot returns the slot of a name, -1 if it has none.
func slot(name string) int {
	plain := strings.TrimSuffix(name, ".new")
	i := 2 * slices.Index(slotNames, plain)
	switch {
	case i < 0 || strings.HasSuffix(plain, ".new"):
		return -1
	case plain != name:
		i++
	}
	return i
}

// slotName is the reverse.
func slotName(i int) string {
	if i%2 == 1 {
		return slotNames[i/2] + ".new"
	}
	return slotNames[i/2]
}

func (c content) get(name string) string { return c[slot(name)] }

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
	d := &disk{tb: tb, commands: top + "/sbin", dev: top + "/dev", file: top + "/wrapper"}
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

func (d *disk) program(mode evidence.Mode) string { return d.commands + "/" + iptables.MultiCall(mode) }

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

// path is where a slot is. The memory is beside the switch, or in a directory of its own.
func (d *disk) path(i int, place setting) string {
	if i/2 == len(slotNames)-1 && place.dev {
		return d.dev + "/" + slotName(i)
	}
	return d.commands + "/" + slotName(i)
}

// set makes the disk have this content.
func (d *disk) set(want content, place setting) {
	for i := range want {
		if d.now[i] != "" && d.now[i] != want[i] {
			host.Check(d.tb, os.Remove(d.path(i, place)))
		}
	}
	for i, target := range want {
		switch {
		case target == "", d.now[i] == target:
		case target == asFile:
			host.Check(d.tb, os.Link(d.file, d.path(i, place)))
		default:
			host.Check(d.tb, os.Symlink(target, d.path(i, place)))
		}
	}
	d.now = want
}

// read returns the content, whatever an actor has made of it.
func (d *disk) read(place setting) content {
	for i := range d.now {
		d.readSlot(i, place)
	}
	return d.now
}

func (d *disk) readSlot(i int, place setting) {
	if i < 0 {
		return
	}
	target, err := os.Readlink(d.path(i, place))
	switch {
	case err == nil:
		d.now[i] = target
	case os.IsNotExist(err):
		d.now[i] = ""
	default:
		d.now[i] = asFile
	}
}

// foreign returns a name that nobody expects, "" if there is none.
func (d *disk) foreign() string {
	for _, directory := range []string{d.commands, d.dev} {
		entries, err := os.ReadDir(directory)
		host.Check(d.tb, err)
		for _, e := range entries {
			if slot(e.Name()) < 0 && storedMode(e.Name()) == "" {
				return e.Name()
			}
		}
	}
	return ""
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
func (d *disk) laid(laid bool) (c content) {
	for i, name := range exec.Names() {
		switch {
		case laid:
			c[slot(name)] = Switch
		case i%2 == 0:
			c[slot(name)] = asFile
		default:
			c[slot(name)] = exec.Names()[i-1]
		}
	}
	if laid {
		c[slot(Switch)] = Wrapper
		c[slot(Wrapper)] = asFile
	}
	return c
}

// leads returns what a name runs: a backend, or "" for the wrapper.
func (c content) leads(name string) (mode evidence.Mode, err error) {
	target := name
	for range 4 {
		mode = storedMode(target)
		if mode != "" {
			return mode, nil
		}
		target = c.get(filepath.Base(target))
		switch target {
		case asFile:
			return "", nil
		case "":
			return "", fmt.Errorf("%s leads nowhere", name)
		}
	}
	return "", fmt.Errorf("%s leads round in a circle", name)
}

// wrong returns what must never be: a name that leads nowhere, or two backends.
func (c content) wrong() error {
	backend := evidence.Mode("")
	for _, name := range exec.Names() {
		mode, err := c.leads(name)
		switch {
		case err != nil:
			return err
		case mode != "" && backend == mode.Other():
			return fmt.Errorf("%s runs %s, another name %s", name, mode, backend)
		case mode != "":
			backend = mode
		}
	}
	return nil
}

// String lists the content.
func (c content) String() string {
	text := ""
	for i, target := range c {
		if target != "" {
			text += slotName(i) + " -> " + target + "; "
		}
	}
	return text
}
