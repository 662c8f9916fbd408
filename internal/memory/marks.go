// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// A mark is a link that says that somebody, in this network namespace and boot, chose a backend without being certain:
// that backend's rules may come from such a choice. Whether the link's owner could have written any cannot be known: a
// process may have had CAP_NET_ADMIN whoever it ran as.

// Everybody can put links into a shared directory, so only so many entries are read. There are fewer in any container
// that is not under attack.
const (
	mostEntries   = 4096
	mostForgotten = 1 << 20 // by Forget, which somebody waits for
)

// Answer answers a query about the host. It is doubted if it would be certain had nobody guessed. That matters only to
// a certain count, so it is looked up only then.
func (m Memory) Answer(q detect.Query) (r detect.Result, doubted bool) {
	if q.Remembered.Mode == m.Mode() && m.pending() {
		return whilePending(q), false
	}
	r = q.Run()
	if r.Reason != detect.RuleCount || !r.Conclusive {
		return r, false
	}
	where := m.Guessed(r.Mode)
	if where == "" {
		return r, false
	}
	return r.Doubt(fmt.Sprintf("somebody in this network namespace acted on a guess (%q), "+
		"and rules that a guess wrote are no evidence", where)), true
}

// pending reports that the call which made the guess is still at work, and may not have written yet.
func (m Memory) pending() bool { return m.Mode() != "" && !m.best.Conclusive && m.best.maker.atWork() }

// whilePending answers a query while the call that made the guess may still be about to write rules by it. Until that
// call has ended, the guess counts like a certain answer: nothing but kubelet's chains outranks it.
func whilePending(q detect.Query) detect.Result {
	q.Remembered.Conclusive = true
	r := q.Run()
	if r.Reason == detect.Remembered {
		r.Conclusive = false
		r.Remembered.Conclusive = false
	}
	return r
}

// Guessed returns the path of a mark for a backend, of this life of a container or an earlier one; "" if there is none.
// The mode "" stands for any backend. Where a directory has more entries than are read, there may be a mark, and the
// text says so.
func (m Memory) Guessed(mode detect.Mode) (where string) {
	for _, dir := range Dirs(0) {
		err := m.eachMark(dir, mostEntries, func(mark found) bool {
			if mode == "" || mark.Mode == mode {
				where = mark.path
			}
			return where == ""
		})
		switch {
		case where != "":
			return where
		case err != nil:
			return err.Error()
		}
	}
	return ""
}

// eachMark shows the marks in a directory to visit until that returns false. It fails if there may be others.
func (m Memory) eachMark(dir string, most int, visit func(found) bool) error {
	if !m.life.Known() {
		return nil
	}
	entries := 0
	err := m.tree.Scan(dir, func(entry string) bool {
		entries++
		if entries > most {
			return false
		}
		uid, about, ours := parseName(entry)
		if !ours || !about.sameNamespace(m.life) {
			return true
		}
		link, ok := m.read(programs.Join(dir, entry), uid, about)
		if !ok {
			return true
		}
		if link.Conclusive && link.sole { // no guess
			return true
		}
		return visit(link)
	})
	switch {
	case entries > most:
		return fmt.Errorf("%s has more than %d entries", dir, most)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil
	default:
		return err
	}
}

// forgetMarks removes what shows that others have guessed, as far as this user may.
func (m Memory) forgetMarks() {
	for _, dir := range Dirs(0) {
		_ = m.eachMark(dir, mostForgotten, func(mark found) bool {
			_ = m.tree.Unlink(mark.path) // one that stays binds nobody here
			return true
		})
	}
}
