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
	steps  []string // what was about to happen at each choice
	killed bool     // one has been, so no other will be

	now       picture // of the host
	verdicts  map[string]verdict
	notStored string // a call that runs another backend than the one that is stored
}

// verdict is what a picture of the host says. Many runs come to the same one, and finding out takes a hundred
// system calls.
type verdict struct {
	wrong, contradiction string
	stored, remembered   detect.Mode
}

func (r *run) verdict() verdict {
	v, known := r.verdicts[r.now.String()]
	if !known {
		v = verdict{
			wrong:         r.h.wrong(),
			contradiction: r.h.contradiction(),
			stored:        r.h.stored(),
			remembered:    r.h.memory(),
		}
		r.verdicts[r.now.String()] = v
	}
	return v
}

// state is an actor at one of its steps.
type state struct {
	proceed chan bool   // false: killed
	reached chan string // a step; closed at the end
	at      string      // the step, "" at the end
	seen    string      // the file system at each of its steps
	result  detect.Mode
}

func startRun(t *testing.T, s schedule, verdicts map[string]verdict) *run {
	h := newHost(t)
	s.layout.lay(h)
	r := &run{h: h, layout: s.layout.name, actors: s.actors, now: h.picture(), verdicts: verdicts, killed: !s.kills}
	for i, a := range s.actors {
		now := &state{proceed: make(chan bool), reached: make(chan string)}
		n := h.n
		n.Tree.PID = i + 1
		n.Tree.Step = func(op, path string) error {
			now.reached <- op + " " + path
			goOn := <-now.proceed
			if !goOn {
				runtime.Goexit()
			}
			return nil
		}
		go func() {
			defer close(now.reached)
			now.result = a.run(h, n)
		}()
		now.at = <-now.reached
		r.states = append(r.states, now)
	}
	return r
}

// step lets an actor go on to its next step, or kills it.
func (r *run) step(c choice) {
	r.taken = append(r.taken, c)
	r.killed = r.killed || c.kill
	s := r.states[c.actor]
	r.steps = append(r.steps, s.at)
	if s.at == "" {
		r.h.tb.Fatalf("%s: replayed, it came to its end before", r)
	}
	s.proceed <- !c.kill
	s.at = <-s.reached
}

// take is step, and notes what the actor has seen and whether it ran what is stored.
func (r *run) take(c choice) {
	s := r.states[c.actor]
	at, before := s.at, r.now
	r.step(c)
	r.now = r.h.picture()
	seen := at + " in " + before.seen(at, s.at) + "\n"
	if !strings.HasSuffix(s.seen, seen) { // who waits for the lock sees nothing new
		s.seen += seen
	}
	if s.at != "" || s.result == "" {
		return
	}
	v := r.verdict()
	if v.stored == "" || s.result == v.stored {
		return
	}
	// Of three, two can be about to put the switch and the memory in line while the third one follows the memory.
	if len(r.actors) > 2 && s.result == v.remembered {
		return
	}
	r.notStored = fmt.Sprintf("%s runs %s, and %s is stored", r.actors[c.actor].name, s.result, v.stored)
}

// branch is a schedule that is still to be run: what was taken before, and what the actors had seen by then, and
// the next choice.
type branch struct {
	taken []choice
	seen  []string
	next  choice
}

func (r *run) branch(next choice) branch {
	b := branch{taken: slices.Clone(r.taken), next: next}
	for _, s := range r.states {
		b.seen = append(b.seen, s.seen)
	}
	return b
}

// replay does what was taken before. What the actors saw is known.
func (r *run) replay(b branch) {
	for _, c := range b.taken {
		r.step(c)
	}
	for i, s := range r.states {
		s.seen = b.seen[i]
	}
	r.now = r.h.picture()
	r.take(b.next)
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
	key := fmt.Sprint(r.killed, "\n", r.now, "\n")
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
	for i, c := range r.taken {
		text += "\n" + r.actors[c.actor].name + ": " + r.steps[i]
		if c.kill {
			text += " (killed)"
		}
	}
	return text + "\n"
}

// picture is what the actors change and see: kubelet's chains, the commands and the memory.
type picture struct {
	kubelet          detect.Mode
	commands, memory []string
}

func (h *fakeHost) picture() picture {
	return picture{
		kubelet:  h.kubelet,
		commands: h.entries("/usr/sbin"),
		memory:   slices.Concat(h.entries("/dev"), h.entries("/dev/shm"), h.entries("/run")),
	}
}

func (p picture) String() string { return fmt.Sprintf("%q", []any{p.kubelet, p.commands, p.memory}) }

// seen is what an actor can have seen from one step to the next.
//
// Nobody reads a temporary link of another actor. That its name is taken shows in the next step of who wants that name,
// and steps are a part of what was seen.
func (p picture) seen(step, next string) string {
	temporary := func(entry string) bool { return strings.HasPrefix(entry, ".") }
	linksTemporary := strings.HasPrefix(step, "symlink ") && strings.Contains(step, "/.")
	switch {
	case strings.HasPrefix(step, appears), linksTemporary && strings.HasPrefix(next, "rename "):
		return "" // there is nothing in between
	case strings.HasPrefix(next, asks): // which a call does as soon as it has read the memory
		p.kubelet = ""
		p.commands = nil
	}
	p.commands = slices.DeleteFunc(slices.Clone(p.commands), temporary)
	p.memory = slices.DeleteFunc(slices.Clone(p.memory), temporary)
	return p.String()
}

// links lists what is in a directory, and where links lead.
func (h *fakeHost) links(dir string) string { return strings.Join(h.entries(dir), " ") }

func (h *fakeHost) entries(dir string) (all []string) {
	entries, err := os.ReadDir(h.real(dir))
	h.check(err)
	for _, e := range entries {
		target := ""
		if e.Type()&os.ModeSymlink != 0 {
			target, _ = os.Readlink(filepath.Join(h.real(dir), e.Name()))
		}
		all = append(all, e.Name()+"="+target)
	}
	return all
}
