// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"crypto/sha256"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// actor is a process that changes links, or wants to. The answers of calls stand for the evidence that they found:
// with different ones, the evidence changes in between. Kubelet's chains are a part of the host: once they are
// there, each call that asks for them finds them.
type actor struct {
	name string
	run  func(h *fakeHost, n Names) detect.Mode // the backend that runs in the end, "" if none
	free bool                                   // kubelet or an administrator: it may overrule the others
}

// Steps that are not the wrapper's own.
const (
	asks    = "ask the kernel"
	appears = "kubelet appears"
)

func caller(name string, a Decision, free bool) actor {
	return actor{name, func(h *fakeHost, n Names) detect.Mode { return h.call(n, a).Mode }, free}
}

// kubeletAppears is kubelet, and then a call that only reads.
func kubeletAppears(mode detect.Mode) actor {
	run := func(h *fakeHost, n Names) detect.Mode {
		_ = n.Tree.Pause(appears, "")
		h.kubelet = mode
		return h.call(n, reading(detect.NFT)).Mode
	}
	return actor{"kubelet " + string(mode), run, true}
}

// undone is a call whose program turns out not to run.
func undone(d Decision) actor {
	run := func(h *fakeHost, n Names) detect.Mode {
		stored := h.store(n, d)
		held := true
		defer func() {
			if held { // it was killed
				stored.execve()
			}
		}()
		_ = n.Tree.Pause("execve fails", "")
		n.Undo(stored)
		held = false
		return ""
	}
	return actor{"undo " + string(d.Mode), run, false}
}

func administrator(name string, command func(n Names)) actor {
	run := func(_ *fakeHost, n Names) detect.Mode {
		_ = n.Tree.Pause("start", "")
		command(n)
		return ""
	}
	return actor{name, run, true}
}

var actors = []actor{
	caller("guess nft", guess(detect.NFT), false),
	caller("count legacy", conclusive(detect.Legacy), false),
	caller("count nft", conclusive(detect.NFT), false),
	undone(conclusive(detect.Legacy)),
	kubeletAppears(detect.Legacy),
	kubeletAppears(detect.NFT),
	administrator("select legacy", func(n Names) { _, _ = n.Select("/usr/sbin", chosenBy(detect.Legacy), false) }),
	administrator("select nft", func(n Names) { _, _ = n.Select("/usr/sbin", chosenBy(detect.NFT), false) }),
	administrator("reset", func(n Names) { _, _ = n.Reset("/usr/sbin") }),
	administrator("install", func(n Names) {
		if unlock, err := n.Tree.Lock("/usr/sbin"); err == nil {
			defer unlock()
			var links []string
			for _, name := range programs.Names() {
				if target, _ := n.Tree.Readlink("/usr/sbin/" + name); target != Switch {
					links = append(links, "/usr/sbin/"+name)
				}
			}
			_, _ = n.Lay("/usr/sbin", wrapperFile, links)
		}
	}),
}

// Every interleaving of two actors, with at most one of them killed before any of its steps: no reachable state has two
// backends, a broken name, or a memory that contradicts the switch; what runs is what is stored; and calls that nobody
// overrules run one backend.
//
// It takes the pairs in which the most can happen. With TEST_ALL it takes all of them, and two calls in other
// layouts, where each name is moved by itself, and threes, of which none is killed. The one that takes a minute and a
// half of a processor is left to TEST_ALL=nightly. All pairs in those layouts would take hours.
func TestEveryInterleaving(t *testing.T) {
	for _, s := range schedules() {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			states := explore(t, s)
			t.Logf("%d states", states)
			if least := s.leastStates(); states < least {
				t.Errorf("only %d states, want at least %d", states, least)
			}
		})
	}
}

// schedule is who is at work in a layout, and whether one of them may be killed.
type schedule struct {
	layout hostLayout
	kills  bool
	actors []actor
}

func (s schedule) String() string {
	names := []string{s.layout.name}
	for _, a := range s.actors {
		names = append(names, a.name)
	}
	return strings.Join(names, ", ")
}

// leastStates tells an exploration from one that has ended early. Actors of few steps come to few states.
func (s schedule) leastStates() int {
	short := []string{"guess nft", "reset", "install"}
	for _, a := range s.actors {
		if !slices.Contains(short, a.name) {
			return 50
		}
	}
	return 10
}

func schedules() (all []schedule) {
	named := map[string]actor{}
	for _, a := range actors {
		named[a.name] = a
	}
	add := func(layout hostLayout, kills bool, names ...string) {
		s := schedule{layout: layout, kills: kills}
		for _, name := range names {
			s.actors = append(s.actors, named[name])
		}
		all = append(all, s)
	}
	noMemory := hostLayout{"installed without a memory", withoutMemory}
	level := os.Getenv("TEST_ALL")
	if level == "" {
		for _, pair := range [][2]string{
			{"guess nft", "count legacy"},
			{"kubelet nft", "count legacy"},
			{"guess nft", "kubelet legacy"},
			{"reset", "count legacy"},
			{"install", "count legacy"},
			{"reset", "select legacy"},
		} {
			add(layouts[0], true, pair[0], pair[1])
		}
		add(noMemory, true, "count nft", "undo legacy")
		return all
	}
	for i, a := range actors {
		for _, b := range actors[:i+1] {
			add(layouts[0], true, a.name, b.name)
		}
	}
	for _, other := range []string{"count nft", "guess nft", "reset"} {
		add(noMemory, true, other, "undo legacy")
	}
	for _, layout := range layouts[1:4] {
		add(layout, true, "guess nft", "count legacy")
	}
	thirds := []string{"reset", "install"}
	if level == "nightly" {
		thirds = append(thirds, "kubelet nft")
	}
	for _, third := range thirds {
		add(layouts[0], false, "guess nft", "count legacy", third)
	}
	return all
}

// mayContradict reports that the memory may be at odds with the switch while the actors are at work: kubelet's
// chains replace it without the lock, and a guess makes a new one between the end of reset and the move of the
// switch.
func mayContradict(actors []actor) bool {
	return len(actors) > 2 ||
		slices.ContainsFunc(actors, func(a actor) bool { return strings.HasPrefix(a.name, "kubelet") })
}

// explore runs the actors in every order of their steps. Two runs that come to the same state, in which each actor has
// seen the same, go on as one. It returns the number of states.
func explore(t *testing.T, s schedule) int {
	t.Helper()
	visited := map[[sha256.Size]byte]bool{}
	verdicts := map[string]verdict{}
	pending := []branch{}
	first := true
	for first || len(pending) > 0 {
		r := startRun(t, s, verdicts)
		if !first {
			last := len(pending) - 1
			r.replay(pending[last])
			pending = pending[:last]
		}
		first = false
		for !visited[r.key()] {
			visited[r.key()] = true
			choices := r.choices()
			wrong := r.wrong(s, len(choices) == 0)
			if wrong != "" {
				t.Fatalf("%s: %s", r, wrong)
			}
			if len(choices) == 0 {
				r.agreed(t)
				break
			}
			for _, c := range choices[1:] {
				pending = append(pending, r.branch(c))
			}
			r.take(choices[0])
		}
		r.end()
	}
	return len(visited)
}

// wrong returns what must not be, now or at the end.
func (r *run) wrong(s schedule, end bool) string {
	v := r.verdict()
	wrong := cmp.Or(v.wrong, r.notStored)
	oneWasKilled := r.killed && s.kills
	if !mayContradict(s.actors) || end && !oneWasKilled {
		wrong = cmp.Or(wrong, v.contradiction)
	}
	return wrong
}
