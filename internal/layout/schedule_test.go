// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

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
)

// choice is one step of a schedule: an actor goes on, or is killed.
type choice struct {
	actor int
	kill  bool
}

// run is one schedule at work.
type run struct {
	h      *fakeHost
	layout string
	actors []actor
	states []*state
	taken  []choice
	killed bool // one has been, so no other will be

	picture   string // of the host now
	notStored string // a call that runs another backend than the one that is stored
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
		n := h.n
		n.Tree.Step = func(op, path string) error {
			s.reached <- op + " " + path
			if !<-s.proceed {
				runtime.Goexit()
			}
			return nil
		}
		go func() {
			defer close(s.reached)
			_ = n.Tree.Pause("start", "")
			s.result = a.run(h, n)
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
	if stored := r.h.stored(); s.at == "" && s.result != "" && stored != "" && s.result != stored {
		r.notStored = fmt.Sprintf("%s runs %s, and %s is stored", r.actors[c.actor].name, s.result, stored)
	}
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
	b.WriteString("kubelet=" + string(h.kubelet) + " ")
	for _, dir := range []string{"/usr/sbin", "/dev", "/dev/shm", "/run"} {
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
