// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// actor is a process that changes links, or wants to. The answers of calls stand for the evidence that they found: with
// different ones, the evidence changes in between.
type actor struct {
	name string
	run  func(h *fakeHost, w Wrapper) detect.Mode // the backend that runs in the end, "" if none
	free bool                                     // kubelet or an administrator: it may overrule the others
}

func caller(name string, a Answer, free bool) actor {
	return actor{name, func(h *fakeHost, w Wrapper) detect.Mode { return h.call(w, a).Mode }, free}
}

func administrator(name string, run func(w Wrapper)) actor {
	return actor{name, func(_ *fakeHost, w Wrapper) detect.Mode { run(w); return "" }, true}
}

var actors = []actor{
	caller("guess nft", guess(detect.NFT), false),
	caller("count legacy", conclusive(detect.Legacy), false),
	caller("kubelet legacy", kubelet(detect.Legacy), true),
	caller("kubelet nft", kubelet(detect.NFT), true),
	administrator("select legacy", func(w Wrapper) { _, _, _ = w.Select("/usr/sbin", detect.Legacy) }),
	administrator("select nft", func(w Wrapper) { _, _, _ = w.Select("/usr/sbin", detect.NFT) }),
	administrator("reset", func(w Wrapper) { _, _ = w.Reset("/usr/sbin") }),
	administrator("install", func(w Wrapper) {
		if unlock, err := w.Lock("/usr/sbin"); err == nil {
			defer unlock()
			var links []string
			for _, name := range programs.Names() {
				if target, _ := w.Readlink("/usr/sbin/" + name); target != Switch {
					links = append(links, "/usr/sbin/"+name)
				}
			}
			_, _ = w.Lay("/usr/sbin", wrapperFile, links)
		}
	}),
}

// Every interleaving of two actors, with at most one of them killed before any of its steps: no reachable state has two
// backends, a broken name, or a memory that contradicts the switch; and calls that nobody overrules run one backend.
//
// It takes the pairs in which the most can happen. With TEST_ALL it takes all of them, two calls in other layouts, where each
// name is moved by itself, and threes, of which none is killed. All pairs in those layouts would take hours.
func TestEveryInterleaving(t *testing.T) {
	actor := map[string]actor{}
	for _, a := range actors {
		actor[a.name] = a
	}
	total := 0
	for _, pair := range [][2]string{
		{"guess nft", "count legacy"}, {"kubelet nft", "count legacy"}, {"kubelet nft", "kubelet legacy"}, {"guess nft", "kubelet legacy"},
		{"select legacy", "kubelet nft"}, {"reset", "count legacy"}, {"install", "count legacy"}, {"reset", "select legacy"},
	} {
		total += explore(t, layouts[0], true, actor[pair[0]], actor[pair[1]])
	}
	if total < 3_000 {
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
		for _, third := range []string{"kubelet nft", "reset", "install"} {
			total += explore(t, layouts[0], false, actor["guess nft"], actor["count legacy"], actor[third])
		}
	}
	t.Logf("%d states", total)
}

// choice is one step of a schedule: an actor goes on, or is killed.
type choice struct {
	actor int
	kill  bool
}

// explore runs the actors in every order of their steps. Two runs that come to the same state, in which each actor has seen
// the same, go on as one. It returns the number of states.
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
			if wrong := r.h.wrong(); wrong != "" {
				t.Fatalf("%s: %s", r, wrong)
			}
			choices := r.choices()
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

// run is one schedule at work.
type run struct {
	h      *fakeHost
	layout string
	actors []actor
	states []*state
	taken  []choice
	killed bool // one has been, so no other will be

	picture string // of the host now
}

// state is an actor at one of its steps.
type state struct {
	proceed chan bool   // false: killed
	reached chan string // a step; closed at the end
	at      string      // the step, "" at the end
	seen    string      // the file system at each of its steps
	result  detect.Mode
}

func startRun(t *testing.T, layout hostLayout, actors []actor) *run {
	h := newHost(t)
	layout.lay(h)
	r := &run{h: h, layout: layout.name, actors: actors, picture: h.picture()}
	for _, a := range actors {
		s := &state{proceed: make(chan bool), reached: make(chan string)}
		w := h.w
		w.step = func(op, path string) error {
			s.reached <- op + " " + path
			if !<-s.proceed {
				runtime.Goexit()
			}
			return nil
		}
		go func() {
			defer close(s.reached)
			_ = w.stop("start", "")
			s.result = a.run(h, w)
		}()
		s.at = <-s.reached
		r.states = append(r.states, s)
	}
	return r
}

func (r *run) take(c choice) {
	r.taken = append(r.taken, c)
	r.killed = r.killed || c.kill
	s := r.states[c.actor]
	if seen := s.at + " in " + r.picture + "\n"; !strings.HasSuffix(s.seen, seen) { // who waits for the lock sees nothing new
		s.seen += seen
	}
	s.proceed <- !c.kill
	s.at = <-s.reached
	r.picture = r.h.picture()
}

func (r *run) choices() (all []choice) {
	for i, s := range r.states {
		if s.at != "" {
			all = append(all, choice{i, false})
		}
	}
	for i, s := range r.states {
		if s.at != "" && !r.killed && !strings.HasPrefix(s.at, "start") {
			all = append(all, choice{i, true})
		}
	}
	return all
}

// key stands for the state: the states themselves would take a gigabyte.
func (r *run) key() [sha256.Size]byte {
	key := fmt.Sprint(r.killed, "\n", r.picture, "\n")
	for _, s := range r.states {
		key += s.at + "\n" + s.seen + "\n"
	}
	return sha256.Sum256([]byte(key))
}

// agreed checks that the calls run one backend, where nobody may overrule them.
func (r *run) agreed(t *testing.T) {
	t.Helper()
	if slices.ContainsFunc(r.actors, func(a actor) bool { return a.free }) {
		return
	}
	mode := detect.Mode("")
	for _, s := range r.states {
		if s.result != "" && mode != "" && s.result != mode {
			t.Fatalf("%s: %s and %s run", r, mode, s.result)
		}
		if s.result != "" {
			mode = s.result
		}
	}
}

// end kills what still runs.
func (r *run) end() {
	for _, s := range r.states {
		if s.at != "" {
			s.proceed <- false
			<-s.reached
		}
	}
	r.h.remove()
}

func (r *run) String() string {
	text := r.layout + ":"
	for _, c := range r.taken {
		text += " " + r.actors[c.actor].name
		if c.kill {
			text += " (killed)"
		}
		text += ","
	}
	return text
}

// picture is all that the actors change and see.
func (h *fakeHost) picture() string {
	var b strings.Builder
	for _, dir := range []string{"/usr/sbin", "/dev/shm", "/run"} {
		entries, err := os.ReadDir(h.real(dir))
		h.check(err)
		for _, e := range entries {
			target := ""
			if e.Type()&os.ModeSymlink != 0 {
				target, _ = os.Readlink(filepath.Join(h.real(dir), e.Name()))
			}
			b.WriteString(e.Name() + "=" + target + " ")
		}
	}
	return b.String()
}
