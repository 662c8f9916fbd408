// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package memory is what a container remembers about its backend: one symlink, made by one system call. It says which
// backend, why, how certain the answer was, and in which network namespace.
//
//	/dev/iptables-memory -> "nft kubelet-hint certain 4026531840 chain KUBE-IPTABLES-HINT is in nft's mangle table"
//
// Only root makes it. Other users read it, and a link that is not root's counts as none.
package memory

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Name is the name of the symlink.
const Name = "iptables-memory"

// Memory is where the symlink is. The zero Memory is nowhere: nothing is remembered.
type Memory struct {
	Dir   *dir.Dir
	netns string // the inode of this thread's network namespace
}

// Find finds the place: /dev if it is the container's own, otherwise the directory of the switch, nil if that is not
// known. Without a directory or without a network namespace that is known, there is no place.
func Find(beside *dir.Dir) Memory {
	netns := namespace()
	if netns == "" {
		return Memory{}
	}
	dev, err := dir.Open("/dev")
	if err == nil {
		if isContainers(dev) {
			return Memory{Dir: dev, netns: netns}
		}
		dev.Close()
	}
	return Memory{Dir: beside, netns: netns}
}

// In returns a memory in a directory, whatever kind of directory it is.
func In(d *dir.Dir) Memory { return Memory{Dir: d, netns: namespace()} }

// isContainers reports whether a /dev is a container's own, as runtimes make it: a tmpfs that belongs to root, in which
// ptmx is a symlink. On a host, ptmx is a device.
func isContainers(dev *dir.Dir) bool {
	var fs unix.Statfs_t
	err := unix.Statfs(dev.Path(), &fs)
	if err != nil || fs.Type != unix.TMPFS_MAGIC {
		return false
	}
	st, err := dev.Stat()
	if err != nil || st.Uid != 0 || st.Mode&0o022 != 0 {
		return false
	}
	ptmx, err := dev.Lstat("ptmx")
	return err == nil && ptmx.Mode&unix.S_IFMT == unix.S_IFLNK
}

// namespace returns the inode of this thread's network namespace, "" if /proc does not tell.
func namespace() string {
	var st unix.Stat_t
	err := unix.Stat("/proc/thread-self/ns/net", &st)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(st.Ino, 10)
}

// OfContainer reports whether what is found here is about the container as a whole: process 1 is known to share our
// root and our network namespace. That is not so for a CNI plugin that runs iptables in a Pod's namespace, for a
// process with hostPID, and where process 1 is another user's.
func OfContainer() bool {
	return same("/proc/1/root", "/") && same("/proc/1/ns/net", "/proc/thread-self/ns/net")
}

func same(path, other string) bool {
	id, err := dir.IDAt(path)
	return err == nil && id.IsAt(other)
}

// Path is where the memory is, for messages; "" if it is nowhere.
func (m Memory) Path() string {
	if m.Dir == nil {
		return ""
	}
	return m.Dir.Join(Name)
}

// Exists reports whether there is a link of that name, whatever it says.
func (m Memory) Exists() bool {
	if m.Dir == nil {
		return false
	}
	_, err := m.Dir.Lstat(Name)
	return err == nil
}

// Read returns what is remembered, or the zero Decision. A link that cannot be read, is not root's, or is about another
// network namespace counts as none.
func (m Memory) Read() evidence.Decision {
	d, _ := m.read()
	return d
}

// read is Read, and returns why the link could not be read: ENOENT if there is none. A link that counts as none is no
// error.
func (m Memory) read() (evidence.Decision, error) {
	if m.Dir == nil {
		return evidence.Decision{}, unix.ENOENT
	}
	st, err := m.Dir.Lstat(Name)
	if err != nil {
		return evidence.Decision{}, err
	}
	isLink := st.Mode&unix.S_IFMT == unix.S_IFLNK
	if st.Uid != 0 || !isLink {
		return evidence.Decision{}, nil
	}
	content, err := m.Dir.Readlink(Name)
	if err != nil {
		return evidence.Decision{}, err
	}
	return parse(content, m.netns), nil
}

// The states, which say how certain the answer was.
const (
	certain = "certain"
	guess   = "guess"
)

// format is the content of the link.
func format(d evidence.Decision, netns string) string {
	state := guess
	if d.Conclusive {
		state = certain
	}
	return strings.Join([]string{string(d.Mode), string(d.Reason), state, netns, d.Because}, " ")
}

// parse is the reverse of format. Content about another network namespace gives the zero Decision.
func parse(content, netns string) evidence.Decision {
	words := strings.SplitN(content, " ", 5)
	if len(words) < 5 || words[3] != netns {
		return evidence.Decision{}
	}
	mode := evidence.Mode(words[0])
	if !mode.Valid() || words[2] != certain && words[2] != guess {
		return evidence.Decision{}
	}
	return evidence.Decision{
		Mode:       mode,
		Reason:     evidence.Reason(words[1]),
		Conclusive: words[2] == certain,
		Because:    words[4],
	}
}

// errLost means that a link was gone, or counted as none, right after it was made.
var errLost = errors.New("the memory does not stay")

// Make remembers an answer unless something is remembered, and returns what is remembered then. A link that counts as
// none is replaced. One that is gone by the time it is read is made again.
func (m Memory) Make(d evidence.Decision) (evidence.Decision, error) {
	if m.Dir == nil {
		return evidence.Decision{}, unix.ENOENT
	}
	for range 3 { // where root's links belong to another user, as on NFS, it would never end
		err := m.Dir.Symlink(format(d, m.netns), Name)
		if err == nil {
			return d, nil
		}
		if !os.IsExist(err) {
			return evidence.Decision{}, err
		}
		said, err := m.read()
		switch {
		case said.Mode != "":
			return said, nil
		case os.IsNotExist(err):
			continue
		case err != nil: // it may say something
			return evidence.Decision{}, err
		}
		err = m.Set(d)
		if err != nil {
			return evidence.Decision{}, err
		}
	}
	return evidence.Decision{}, errLost
}

// Set remembers an answer, whatever was remembered before.
func (m Memory) Set(d evidence.Decision) error {
	if m.Dir == nil {
		return unix.ENOENT
	}
	return m.Dir.Replace(format(d, m.netns), Name)
}

// Forget removes what is remembered.
func (m Memory) Forget() error {
	if m.Dir == nil {
		return nil
	}
	err := m.Dir.Remove(Name)
	if err == nil {
		return nil
	}
	_, gone := m.Dir.Lstat(Name) // on a read-only file system, unlink(2) does not look whether there is one
	if os.IsNotExist(gone) {
		return nil
	}
	return err
}
