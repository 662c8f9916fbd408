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

func caller(name string, a Decision, free bool) actor {
	return actor{name, func(h *fakeHost, n Names) detect.Mode { return h.call(n, a).Mode }, free}
}

// kubeletAppears is kubelet, and then a call that only reads.
func kubeletAppears(mode detect.Mode) actor {
	run := func(h *fakeHost, n Names) detect.Mode {
		_ = n.Tree.Pause("kubelet appears", "")
		h.kubelet = mode
		return h.call(n, reading(detect.NFT)).Mode
	}
	return actor{"kubelet " + string(mode), run, true}
}

func administrator(name string, run func(n Names)) actor {
	return actor{name, func(_ *fakeHost, n Names) detect.Mode { run(n); return "" }, true}
}

var actors = []actor{
	caller("guess nft", guess(detect.NFT), false),
	caller("count legacy", conclusive(detect.Legacy), false),
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
// layouts, where each name is moved by itself; with TEST_ALL=nightly also threes, of which none is killed. All
// pairs in those layouts would take hours.
func TestEveryInterleaving(t *testing.T) {
	actor := map[string]actor{}
	for _, a := range actors {
		actor[a.name] = a
	}
	total := 0
	for _, pair := range [][2]string{
		{"guess nft", "count legacy"}, {"kubelet nft", "count legacy"}, {"guess nft", "kubelet legacy"},
		{"reset", "count legacy"}, {"install", "count legacy"}, {"reset", "select legacy"},
	} {
		total += explore(t, layouts[0], true, actor[pair[0]], actor[pair[1]])
	}
	if total < 2_500 {
		t.Errorf("only %d states", total)
	}
	if os.Getenv("TEST_ALL") != "" {
		for i, a := range actors {
			for _, b := range actors[:i+1] {
				total += explore(t, layouts[0], true, a, b)
			}
		}
		for _, layout := range layouts[1:4] {
			total += explore(t, layout, true, actor["guess nft"], actor["count legacy"])
		}
	}
	if os.Getenv("TEST_ALL") == "nightly" {
		for _, third := range []string{"kubelet nft", "reset", "install"} {
			total += explore(t, layouts[0], false, actor["guess nft"], actor["count legacy"], actor[third])
		}
	}
	t.Logf("%d states", total)
}

// mayContradict reports that the memory may be at odds with the switch while the actors are at work: kubelet's
// chains replace it without the lock, and a guess makes a new one between the end of reset and the move of the
// switch.
func mayContradict(actors []actor) bool {
	return len(actors) > 2 || slices.ContainsFunc(actors, func(a actor) bool { return strings.HasPrefix(a.name, "kubelet") })
}

// explore runs the actors in every order of their steps. Two runs that come to the same state, in which each actor
// has seen the same, go on as one. It returns the number of states.
func explore(t *testing.T, layout hostLayout, kills bool, actors ...actor) int {
	t.Helper()
	visited := map[[sha256.Size]byte]bool{}
	for pending := [][]choice{nil}; len(pending) > 0; {
		prefix := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		r := startRun(t, layout, actors)
		r.killed = !kills
		for _, c := range prefix {
			r.take(c)
		}
		for {
			if key := r.key(); visited[key] {
				break
			} else {
				visited[key] = true
			}
			wrong := cmp.Or(r.h.wrong(), r.notStored)
			choices := r.choices()
			if !mayContradict(actors) || len(choices) == 0 && !(r.killed && kills) {
				wrong = cmp.Or(wrong, r.h.contradiction())
			}
			if wrong != "" {
				t.Fatalf("%s: %s", r, wrong)
			}
			if len(choices) == 0 {
				r.agreed(t)
				break
			}
			for _, c := range choices[1:] {
				pending = append(pending, append(slices.Clone(r.taken), c))
			}
			r.take(choices[0])
		}
		r.end()
	}
	return len(visited)
}
