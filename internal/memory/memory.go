// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package memory knows the container, and what it remembers of its backend.
//
// The memory is a symlink, which is made by one atomic system call, so concurrent first calls agree by reading what won:
//
//	/dev/iptables-wrapper.0.4026531840.4711.0badcafe -> nft rule-count certain 4026531840.4711.0badcafe nft has 15 rules and legacy has no rules
//
// Its name has the user, the network namespace, and the container's life. Its target begins with the backend, followed by the
// reason, how certain that was, the life again, and what decided.
package memory

import (
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Memory is the container's memory of its backend, as one user sees it.
type Memory struct {
	tree tree.Tree
	life string // "" where there can be no memory
	uid  int

	best found   // what is believed
	mine found   // what this user made, believed or not
	void tree.ID // of a link that was found not to hold
}

// ErrRoots means that root's memory says something else, which outranks another user's.
var ErrRoots = errors.New("root's memory of this container says otherwise")

// Read reads the memory of a container. There is none where the container is not known, or for a process that runs set-user-ID.
func Read(t tree.Tree, p self.Process, c Container) Memory {
	m := Memory{tree: t, uid: p.UID}
	if c.Netns != "" && p.Trusted() {
		m.life = c.Netns + "." + c.Instance
		if t.Pause("read", m.name(m.uid)) == nil {
			m.Refresh()
		}
	}
	return m
}

// Remembered returns what is believed; its Mode is "" if there is nothing.
func (m Memory) Remembered() detect.Memory { return m.best.Memory }

// Mode returns the remembered backend, "" if there is none.
func (m Memory) Mode() detect.Mode { return m.best.Mode }

// Path returns where the memory is, "" if there is none.
func (m Memory) Path() string { return m.best.path }

// Own returns where this user's memory is, believed or not, "" if there is none.
func (m Memory) Own() string { return m.mine.path }

func (m Memory) name(uid int) string {
	return self.WrapperName + "." + strconv.Itoa(uid) + "." + m.life
}

// Refresh reads the memory again. It finds what can be believed: first what kubelet's chains said, then root's, then one's own.
func (m *Memory) Refresh() {
	m.best, m.mine = found{}, found{}
	if m.life == "" {
		return
	}
	for _, uid := range slices.Compact([]int{0, m.uid}) {
		for _, dir := range Dirs(uid) {
			f, ok := m.read(programs.Join(dir, m.name(uid)), uid, m.life)
			if !ok || f.id == m.void || uid == overflow && !mapsAll() || m.usable(dir, uid) != nil {
				continue
			}
			if uid == m.uid && m.mine.path == "" {
				m.mine = f
			}
			if f.state == Blind && uid != m.uid || f.state == Unbound {
				continue // what root could not see binds nobody else
			}
			if m.best.path == "" || byKubelet(f.Memory) && !byKubelet(m.best.Memory) {
				m.best = f
			}
			break // it was made in the first place that would have it
		}
	}
}

func byKubelet(r detect.Memory) bool { return r.Conclusive && r.Reason.Kubelet() }

// Make remembers an answer, unless something is remembered already. Mode then returns what holds. The state is that of a guess.
func (m *Memory) Make(r detect.Memory, state string) error {
	if m.Mode() != "" {
		return nil
	}
	return m.create(r, state)
}

func (m *Memory) create(r detect.Memory, state string) error {
	err := errors.New("there is no place for a memory")
	for _, dir := range Dirs(m.uid) {
		if m.life == "" || m.usable(dir, m.uid) != nil {
			continue
		}
		path := programs.Join(dir, m.name(m.uid))
		err = m.tree.Symlink(m.target(r, state), path)
		if errors.Is(err, unix.EEXIST) && m.mine.path == path && m.mine.state == Unbound && state != Unbound {
			err = m.tree.ReplaceUnlocked(path, m.target(r, state)) // it binds nobody
		}
		if m.Refresh(); err == nil || m.mine.path != "" { // this, or what another call made faster
			return nil
		}
	}
	return err
}

// Set remembers an answer, whatever is remembered now.
func (m *Memory) Set(r detect.Memory) error {
	if m.best.path != m.mine.path && m.Mode() != r.Mode && !byKubelet(r) {
		return ErrRoots // so it would not be believed
	}
	var err error
	if m.mine.path == "" {
		err = m.create(r, Guess)
	}
	// There is no path if the memory cannot be read, or if somebody has just removed it.
	if now := m.mine; now.path != "" && err == nil && (now.Mode != r.Mode || now.Reason != r.Reason || now.Conclusive != r.Conclusive) {
		err = m.tree.ReplaceUnlocked(now.path, m.target(r, Guess))
		m.Refresh()
	}
	if err == nil && m.Mode() != r.Mode {
		err = ErrRoots
	}
	return err
}

// Renew replaces a memory that was found not to hold: a guess after which nothing was written. One that was made since is left
// alone, as far as two system calls can tell.
func (m *Memory) Renew() {
	m.void = m.best.id
	if m.best.path == m.mine.path && m.best.path != "" {
		if st, err := m.tree.Lstat(m.best.path); err == nil && tree.IDOf(st) == m.void {
			_ = m.tree.Unlink(m.best.path)
		}
	}
	m.Refresh()
}

// Forget removes the memory, and what shows that others have guessed, as far as this user may. It fails if something is left that is
// believed, such as root's.
func (m *Memory) Forget() error {
	for _, mark := range m.marks() {
		if mark.path != m.mine.path {
			_ = m.tree.Unlink(mark.path) // another user's, which binds nobody here
		}
	}
	for m.mine.path != "" {
		if err := m.tree.Unlink(m.mine.path); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		m.Refresh() // there may be another in the next directory
	}
	if m.best.path != "" {
		return ErrRoots
	}
	return nil
}
