// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

const dev = "/dev"

// Dirs returns the directories in which a user's memory can be, in this order: /dev is for root's alone, see usable, and the others
// are usually writable where the container's root is not.
func Dirs(uid int) []string {
	dirs := []string{dev, "/dev/shm", "/run"}
	if uid != 0 {
		return dirs[1:]
	}
	return dirs
}

// overflow is what files of unmapped users seem to belong to, unless somebody changed /proc/sys/kernel/overflowuid.
const overflow = 65534

// usable says why a user's memory in a directory is neither believed nor made. In one that others can write and that is not sticky,
// anybody can put theirs in its place. The /dev that a container runtime makes is the container's own: a tmpfs whose ptmx is a
// symlink. In the host's, ptmx is a device. Root's memory is nowhere else, where that can be written: root of another container of
// the pod may have put there what is in the others.
func (m *Memory) usable(dir string, uid int) error {
	const othersWrite = 0o022
	st, err := m.tree.Stat(dir)
	switch {
	case err != nil:
		return err
	case st.Uid != 0 && int(st.Uid) != m.uid, st.Mode&othersWrite != 0 && st.Mode&unix.S_ISVTX == 0:
		return errors.New("others can replace what is in it")
	case dir == dev && (st.Mode&othersWrite != 0 || !m.tree.IsLink("/dev/ptmx")):
		return errors.New("it is not the container's own")
	case dir != dev && uid == 0 && m.tree.IsLink("/dev/ptmx") && m.usable(dev, 0) == nil && !m.tree.ReadOnly(dev):
		return errors.New("the container has a /dev of its own")
	}
	return nil
}

// Unwritable says why no memory can be made, in any of the places for it; nil if there is one.
func (m Memory) Unwritable() error {
	var all []error
	for _, dir := range Dirs(m.uid) {
		err := m.usable(dir, m.uid)
		if err == nil {
			err = m.tree.Access(dir, unix.W_OK|unix.X_OK)
		}
		if err == nil || m.Mode() != "" {
			return nil
		}
		all = append(all, fmt.Errorf("%s: %w", dir, err))
	}
	return errors.Join(all...)
}

// found is a link that says which backend was chosen.
type found struct {
	path string
	id   tree.ID
	detect.Memory
	state string
	maker int // the process that made it, 0 if it does not say
}

// How certain an answer was.
const (
	certain = "certain"
	Guess   = "guess"
	Blind   = "blind"   // a guess that could not ask both backends
	Unbound = "unbound" // a guess by a process that cannot tell whose container this is: it binds nobody
)

// read reads a link that must belong to a user and be about one life.
func (m Memory) read(path string, uid int, life string) (f found, ok bool) {
	st, err := m.tree.Lstat(path)
	if err != nil || int(st.Uid) != uid {
		return f, false
	}
	target, err := m.tree.Readlink(path)
	if err != nil {
		return f, false
	}
	f, ok = parse(target, life)
	f.path, f.id, f.Since = path, tree.IDOf(st), time.Unix(st.Mtim.Unix())
	// It may be another process by now, which only lets a guess hold for longer.
	f.Pending = f.maker > 0 && f.maker != os.Getpid() && !errors.Is(unix.Kill(f.maker, 0), unix.ESRCH)
	return f, ok
}

// parse reads a memory's target. What follows the backend and cannot be read makes it a guess: the form of former versions, for
// example, is the backend alone. A memory of another life is none.
//
// Behind "guess" and "blind" is the ID of the process that made it: "guess:4711".
func parse(target, life string) (f found, ok bool) {
	words := strings.SplitN(target, " ", 5)
	f.Mode, f.state = detect.Mode(words[0]), Guess
	if f.Mode != detect.NFT && f.Mode != detect.Legacy || len(words) >= 4 && words[3] != life {
		return found{}, false
	}
	if len(words) < 4 {
		return f, true
	}
	state, pid, _ := strings.Cut(words[2], ":")
	f.state = state
	f.maker, _ = strconv.Atoi(pid)
	if reason := detect.Reason(words[1]); slices.Contains(detect.Reasons(), reason) {
		f.Reason, f.Conclusive = reason, state == certain
	}
	f.Because = strings.Join(words[4:], "")
	return f, true
}

func (m Memory) target(r detect.Memory, state string) string {
	if r.Conclusive {
		state = certain
	} else if r.Reason != detect.Override && state != Unbound {
		state += ":" + strconv.Itoa(os.Getpid())
	}
	return strings.Join([]string{string(r.Mode), cmp.Or(string(r.Reason), "unknown"), state, m.life, r.Because}, " ")
}

// Answer answers a query about the host. Whether anybody guessed matters only to a certain count, so that is looked up only then.
func (m Memory) Answer(q detect.Query) detect.Result {
	r := q.Run()
	if r.Reason == detect.RuleCount && r.Conclusive && q.Guessed == "" {
		if q.Guessed = m.Guessed(r.Mode); q.Guessed != "" {
			r = q.Run()
		}
	}
	return r
}

// Guessed returns where it shows that anybody in this network namespace, in this life of a container or an earlier one, chose a
// backend without certain evidence, "" if it does not: the rules of that backend may be of that making. "" stands for any backend.
func (m Memory) Guessed(mode detect.Mode) string {
	for _, mark := range m.marks() {
		if mode == "" || mark.Mode == mode {
			return mark.path
		}
	}
	return ""
}

// marks are the links of anybody, in this network namespace and boot, that are no certain answer. Each must belong to the user in its
// name.
func (m Memory) marks() (all []found) {
	if m.life == "" {
		return nil
	}
	netns, _, _ := strings.Cut(m.life, ".")
	boot := m.life[strings.LastIndexByte(m.life, '.'):]
	for _, dir := range Dirs(0) {
		for _, name := range m.tree.List(dir) {
			rest, ours := strings.CutPrefix(name, self.WrapperName+".")
			user, life, _ := strings.Cut(rest, ".")
			uid, err := strconv.Atoi(user)
			if !ours || err != nil || !strings.HasPrefix(life, netns+".") || !strings.HasSuffix(life, boot) {
				continue
			}
			if f, ok := m.read(programs.Join(dir, name), uid, life); ok && !f.Conclusive {
				all = append(all, f)
			}
		}
	}
	return all
}
