// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package memory knows the container, and what it remembers of its backend.
//
// The memory is a symlink, which is made by one atomic system call, so concurrent first calls agree by reading what
// won:
//
//	/dev/iptables-wrapper.0.4026531840.4711.0badcafe ->
//		nft rule-count certain 4026531840.4711.0badcafe nft has 15 rules and legacy has no rules
//
// Its name has the user, the network namespace, and the container's life. Its target begins with the backend,
// followed by the reason, how certain that was, the life again, and what decided. docs/on-disk.md promises that form.
package memory

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Memory is the container's memory of its backend, as one user sees it.
type Memory struct {
	tree tree.Tree
	life Life // not known where there can be no memory
	uid  int

	best found   // what is believed
	mine found   // what this user made, believed or not
	void tree.ID // of a link that was found not to hold
	home detect.Memory
}

// ErrRoots means that root's memory says something else, which outranks another user's.
var ErrRoots = errors.New("root's memory of this container says otherwise")

// Read reads the memory of a container. There is none where the container is not known, or for a process that runs
// set-user-ID.
func Read(t tree.Tree, p self.Process, c Container) Memory {
	m := Memory{tree: t, uid: p.UID}
	if !c.Life.Known() || !p.Trusted() {
		return m
	}
	if c.away() {
		there := Memory{tree: t, uid: p.UID, life: c.Home}
		there.Refresh()
		m.home = there.best.Memory
	}
	m.life = c.Life
	err := t.Pause("read", name(m.uid, m.life))
	if err == nil {
		m.Refresh()
	}
	return m
}

// Remembered returns what is believed; its Mode is "" if there is nothing.
func (m Memory) Remembered() detect.Memory { return m.best.Memory }

// Home returns what is believed of the network namespace of process 1, for a thread that is in another one; its Mode
// is "" if there is nothing. It is only read here: what is decided in a pod's namespace says nothing about the
// host's.
func (m Memory) Home() detect.Memory { return m.home }

// Mode returns the remembered backend, "" if there is none.
func (m Memory) Mode() detect.Mode { return m.best.Mode }

// Path returns where the memory is, "" if there is none.
func (m Memory) Path() string { return m.best.path }

// OwnPath returns where this user's memory is, believed or not, "" if there is none.
func (m Memory) OwnPath() string { return m.mine.path }

// Refresh reads the memory again. It finds what can be believed: first what kubelet's chains said, then root's, then
// one's own.
func (m *Memory) Refresh() {
	m.best, m.mine = found{}, found{}
	if !m.life.Known() {
		return
	}
	own := m.links(m.uid)
	best := m.believed(own)
	m.mine = best
	if best.path == "" && len(own) > 0 {
		m.mine = own[0] // a mark
	}
	if m.uid != 0 {
		roots := m.believed(m.links(0))
		if roots.path != "" && (byKubelet(roots.Memory) || !byKubelet(best.Memory)) {
			best = roots
		}
	}
	m.best = best
}

// links returns a user's memories, in the order of the directories. It was made in the first one that would have it.
func (m *Memory) links(uid int) (all []found) {
	if uid == tree.Overflow && !MapsAll() {
		return nil
	}
	for _, dir := range Dirs(uid) {
		f, ok := m.read(programs.Join(dir, name(uid, m.life)), uid, m.life)
		if !ok || !f.sole || f.id == m.void || m.unusable(dir, uid) != nil {
			continue
		}
		all = append(all, f)
		if f.state != Unbound && f.state != Blind {
			break // it binds whoever believes this user, so the other directories add nothing
		}
	}
	return all
}

// believed returns the first of one user's memories that binds the user of m.
func (m *Memory) believed(links []found) found {
	for _, f := range links {
		switch {
		case f.state == Unbound:
			continue
		case f.state == Blind && f.uid != m.uid: // what root could not see binds nobody else
			continue
		}
		return f
	}
	return found{}
}

func byKubelet(r detect.Memory) bool { return r.Conclusive && r.Reason.Kubelet() }

// Make remembers an answer, unless something is remembered already. Mode then returns what holds. The state counts if
// the answer is a guess.
func (m *Memory) Make(r detect.Memory, state State) error {
	if m.Mode() != "" {
		return nil
	}
	return m.create(r, state)
}

// create makes a link in the first directory that will have it, or finds the one that another call has made faster. A
// mark does not count as such, unless it is a mark that is to be made.
func (m *Memory) create(r detect.Memory, state State) error {
	err := errors.New("there is no place for a memory")
	if !m.life.Known() {
		return err
	}
	target := m.target(r, state)
	for _, dir := range Dirs(m.uid) {
		if m.unusable(dir, m.uid) != nil {
			continue
		}
		path := programs.Join(dir, name(m.uid, m.life))
		err = m.put(path, target, state)
		m.Refresh()
		faster := m.mine.path != "" && (m.mine.state != Unbound || state == Unbound)
		if err == nil || faster {
			return nil
		}
	}
	return err
}

// put makes a link where nothing is, or what binds nobody. Somebody may put things there and remove them, in turn.
func (m *Memory) put(path, target string, state State) (err error) {
	for range 20 {
		err = m.tree.Symlink(target, path)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
		err = m.takeOver(path, target, state)
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return err
}

// takeOver puts a link in place of what binds nobody: a mark of this user, or what another user has put under this
// user's name, also by a hard link. In a sticky directory only root can replace the latter. It fails with EEXIST if
// what is there stays, and with ENOENT if it has gone.
func (m *Memory) takeOver(path, target string, state State) error {
	if m.mine.path == path && m.mine.state == Unbound && state != Unbound {
		return m.tree.ReplaceUnlocked(path, target)
	}
	foreign := func(st unix.Stat_t) bool {
		hardLinked := tree.IsLink(st) && st.Nlink != 1
		return int(st.Uid) != m.uid || hardLinked
	}
	st, err := m.tree.Lstat(path)
	if err != nil {
		return err
	}
	if !foreign(st) {
		return unix.EEXIST
	}
	return m.tree.Displace(path, target, foreign)
}

// Set remembers an answer, whatever is remembered now.
func (m *Memory) Set(r detect.Memory) error {
	byRoot := m.best.path != "" && m.best.path != m.mine.path
	if byRoot && m.Mode() != r.Mode && !byKubelet(r) {
		return ErrRoots // so it would not be believed
	}
	err := m.write(r)
	if err == nil && m.Mode() != r.Mode {
		return ErrRoots
	}
	return err
}

// write makes this user's memory say an answer.
func (m *Memory) write(r detect.Memory) error {
	if m.mine.path == "" || m.mine.state == Unbound {
		err := m.create(r, Guess)
		if err != nil {
			return err
		}
	}
	now := m.mine
	if now.path == "" { // it cannot be read, or somebody has just removed it
		return nil
	}
	if now.Mode == r.Mode && now.Reason == r.Reason && now.Conclusive == r.Conclusive {
		return nil
	}
	err := m.tree.ReplaceUnlocked(now.path, m.target(r, Guess))
	m.Refresh()
	return err
}

// Discard forgets a memory that was found not to hold: a guess after which nothing was written. It is removed if it is
// this user's. One that was made since is left alone, as far as two system calls can tell.
func (m *Memory) Discard() {
	m.void = m.best.id
	if m.best.path == m.mine.path && m.best.path != "" {
		st, err := m.tree.Lstat(m.best.path)
		if err == nil && tree.IDOf(st) == m.void {
			_ = m.tree.Unlink(m.best.path)
		}
	}
	m.Refresh()
}

// Forget removes the memory, and what shows that others have guessed, as far as this user may. It fails if something
// is left that is believed, such as root's.
func (m *Memory) Forget() error {
	m.forgetMarks()
	for m.mine.path != "" {
		err := m.tree.Unlink(m.mine.path)
		gone := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EISDIR) // another user may put a directory there
		if err != nil && !gone {
			return err
		}
		m.Refresh() // there may be another in the next directory
	}
	if m.best.path != "" {
		return ErrRoots
	}
	return nil
}
