// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package interleave

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// disk is a directory with both programs, the container's /dev, and the links that actors find there. Its content can
// be exchanged at any moment, so that one disk serves all explorations.
type disk struct {
	tb       testing.TB
	commands string // DIR, writable
	readOnly string // the same directory on a read-only mount
	file     string // the wrapper's file, to which names are hard links
	record   string // the name of the record
	lock     *os.File
	now      content
}

// numberOfLinks is how many names can change: the six, the wrapper, the switch and the record.
const numberOfLinks = 9

// content is what can change: the content of each link, by slot, a name first and then its temporary link. asFile
// stands for a hard link to the wrapper.
type content [2 * numberOfLinks]string

const asFile = "(wrapper)"

// aRecord stands for the name of the record, which depends on the container.
const aRecord = "(record)"

var slotNames = append(iptables.Commands(), link.Wrapper, link.Switch, aRecord)

// slot returns the slot of a name, -1 if it has none.
func slot(name string) int {
	plain := strings.TrimSuffix(name, ".new")
	if strings.HasPrefix(plain, "iptables-backend-") {
		plain = aRecord
	}
	i := 2 * slices.Index(slotNames, plain)
	switch {
	case i < 0:
		return -1
	case strings.HasSuffix(name, ".new"):
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

func newDisk(t *testing.T) *disk {
	t.Helper()
	top := t.TempDir()
	record, err := link.OpenRecord()
	host.Check(t, err)
	d := &disk{tb: t, commands: top + "/sbin", readOnly: top + "/ro", file: top + "/wrapper", record: record.Name}
	if record.Dev == nil {
		t.Fatal("the container has no /dev of its own")
	}
	record.Dev.Close()
	host.Check(t, os.Mkdir(d.commands, 0o755))
	host.Check(t, os.Mkdir(d.readOnly, 0o755))
	for _, path := range []string{d.file, d.program(detect.NFT), d.program(detect.Legacy)} {
		host.Check(t, os.WriteFile(path, nil, 0o755))
	}
	const marked = "\x7fELF this executable is iptables-wrapper, see github.com/iptables-wrappers" // by link.mark
	host.Check(t, os.WriteFile(d.file, []byte(marked), 0o755))
	host.Check(t, unix.Mount(d.commands, d.readOnly, "", unix.MS_BIND, ""))
	t.Cleanup(func() { host.Check(t, unix.Unmount(d.readOnly, unix.MNT_DETACH)) })
	host.Check(t, unix.Mount("", d.readOnly, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	d.lock, err = os.Open(d.commands)
	host.Check(t, err)
	t.Cleanup(func() { d.lock.Close() })
	return d
}

func (d *disk) program(backend detect.Backend) string {
	return d.commands + "/" + iptables.MultiCall(string(backend))
}

func (d *disk) path(i int) string {
	name := slotName(i)
	if strings.HasPrefix(name, aRecord) {
		return "/dev/" + strings.Replace(name, aRecord, d.record, 1)
	}
	return d.commands + "/" + name
}

// set makes the disk have this content.
func (d *disk) set(want content) {
	for i := range want {
		if d.now[i] != "" && d.now[i] != want[i] {
			host.Check(d.tb, os.Remove(d.path(i)))
		}
	}
	for i, target := range want {
		switch {
		case target == "", d.now[i] == target:
		case target == asFile:
			host.Check(d.tb, os.Link(d.file, d.path(i)))
		default:
			host.Check(d.tb, os.Symlink(target, d.path(i)))
		}
	}
	d.now = want
}

// read returns the content, whatever an actor has made of it.
func (d *disk) read() content {
	for i := range d.now {
		d.readSlot(i)
	}
	return d.now
}

func (d *disk) readSlot(i int) {
	if i < 0 {
		return
	}
	target, err := os.Readlink(d.path(i))
	switch {
	case err == nil:
		d.now[i] = target
	case os.IsNotExist(err):
		d.now[i] = ""
	default:
		d.now[i] = asFile
	}
}

// foreign returns a name that no step should make, "" if there is none.
func (d *disk) foreign() string {
	entries, err := os.ReadDir(d.commands)
	host.Check(d.tb, err)
	for _, e := range entries {
		if slot(e.Name()) < 0 && iptables.BackendOf(e.Name()) == "" {
			return e.Name()
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

// laid is a content in which the switch points to the wrapper, or the binary was copied over the six commands.
func laid(switched bool) (c content) {
	for i, name := range iptables.Commands() {
		switch {
		case switched:
			c[slot(name)] = link.Switch
		case i%2 == 0:
			c[slot(name)] = asFile
		default:
			c[slot(name)] = iptables.Commands()[i-1]
		}
	}
	if switched {
		c[slot(link.Switch)] = link.Wrapper
		c[slot(link.Wrapper)] = asFile
	}
	return c
}

// leads returns the file to which a name leads: a program, or a name of the wrapper's file.
func (c content) leads(name string) (file string, err error) {
	file = name
	for range 4 {
		if iptables.BackendOf(file) != "" {
			return file, nil
		}
		target := c.get(file)
		switch target {
		case asFile:
			return file, nil
		case "":
			return "", fmt.Errorf("%s leads nowhere", name)
		}
		file = filepath.Base(target)
	}
	return "", fmt.Errorf("%s leads round in a circle", name)
}

// wrong returns what must never be: a name that leads nowhere, or two backends.
func (c content) wrong() error {
	ran := ""
	for _, name := range iptables.Commands() {
		file, err := c.leads(name)
		if err != nil {
			return err
		}
		backend := iptables.BackendOf(file)
		if backend != "" && ran != "" && backend != ran {
			return fmt.Errorf("%s runs %s, another name %s", name, backend, ran)
		}
		if backend != "" {
			ran = backend
		}
	}
	return nil
}

// wrapped reports whether one of the six commands leads to the switch. Others may lead to it through that one.
func (c content) wrapped() bool {
	return slices.ContainsFunc(iptables.Commands(), func(name string) bool { return c.get(name) == link.Switch })
}

// bypassed reports whether one of the six commands exists, and does not lead to the switch, directly or through others.
func (c content) bypassed() bool {
	return slices.ContainsFunc(iptables.Commands(), func(name string) bool {
		at := name
		for at != "" && at != link.Switch && slices.Contains(iptables.Commands(), at) {
			at = c.get(at)
		}
		return c.get(name) != "" && at != link.Switch
	})
}

// allWrapped reports whether all of them do, and the switch points to a program.
func (c content) allWrapped() bool {
	return c.stored() != "" && !slices.ContainsFunc(iptables.Commands(), func(name string) bool {
		return c.get(name) != link.Switch
	})
}

// stored is the backend in the switch, "" if it is the wrapper, or if there is no switch.
func (c content) stored() detect.Backend {
	return detect.Backend(iptables.BackendOf(filepath.Base(c.get(link.Switch))))
}

// recorded is the backend in the record.
func (c content) recorded() detect.Backend { return detect.Backend(c.get(aRecord)) }

// left is how many temporary links there are.
func (c content) left() (n int) {
	for i, target := range c {
		if i%2 == 1 && target != "" {
			n++
		}
	}
	return n
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
