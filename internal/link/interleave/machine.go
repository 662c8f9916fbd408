// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package interleave

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// machine knows what each step of each actor does. It finds out by running the actor, the real code on a real file
// system, up to that step: before each earlier one, the disk gets the content that the actor met there. What one step
// does is found out once, and serves every interleaving in which an actor that has seen the same meets the same.
type machine struct {
	disk  *disk
	place setting

	contents []content
	verdicts []verdict // about them
	numbers  map[content]int32
	moments  []moment
	starts   map[string]int32 // of actors, by name
	known    map[question]answer
	alike    map[string]answer // by what a step can see, rather than by all that is there
	live     *running          // the actor that ran last
	liveAt   int32             // the moment to which it has come
	runs     int               // how often an actor was started
}

// moment is an actor before one of its steps.
type moment struct {
	actor   actor
	before  int32    // the moment before, -1 at the start
	met     met      // what it met there
	changes []change // by its last step
	step    string   // what it is about to do, "" at its end
	outcome
}

// met is what an actor meets: contents by number, and whether it can have the lock.
type met struct {
	content int32
	kernel  kernel
	lock    holder
}

type holder int8

const (
	free holder = iota
	mine
	others
)

type question struct {
	moment int32
	met    met
}

// answer is what a step does: to the actor, and to what is there. A step that waits has none.
type answer struct {
	moment  int32
	changes []change
	content int32
	kernel  kernel
	lock    holder
	waits   bool
}

func newMachine(d *disk, place setting) *machine {
	return &machine{disk: d, place: place, numbers: map[content]int32{}, starts: map[string]int32{},
		known: map[question]answer{}, alike: map[string]answer{}}
}

func (m *machine) number(c content) int32 {
	n, known := m.numbers[c]
	if !known {
		n = int32(len(m.contents))
		m.contents = append(m.contents, c)
		m.numbers[c] = n
	}
	return n
}

// start returns the moment at which an actor has done nothing yet.
func (m *machine) start(a actor) int32 {
	at, known := m.starts[a.name]
	if known {
		return at
	}
	first := "appear"
	if a.run != nil {
		p := m.launch(a)
		first = p.at
		p.stop()
	}
	at = int32(len(m.moments))
	m.moments = append(m.moments, moment{actor: a, before: -1, step: first})
	m.starts[a.name] = at
	return at
}

// next returns what an actor's next step does.
func (m *machine) next(at int32, now met) answer {
	if now.lock == others && !strings.HasPrefix(m.moments[at].step, "lock") {
		now.lock = free // it does not matter
	}
	q := question{at, now}
	known, ok := m.known[q]
	if ok {
		return known
	}
	key := fmt.Sprint(at, " ", m.visible(m.moments[at].step, now))
	a, ok := m.alike[key]
	if !ok {
		a = m.perform(at, now)
		m.alike[key] = a
	}
	a.content = now.content
	if len(a.changes) > 0 {
		a.content = m.number(m.contents[now.content].with(a.changes))
	}
	a.kernel = now.kernel
	if m.moments[at].step == "appear" {
		a.kernel = m.moments[at].actor.does(now.kernel)
	}
	m.known[q] = a
	return a
}

// visible is what a step can see.
func (m *machine) visible(step string, now met) string {
	c := m.contents[now.content]
	operation, name, _ := strings.Cut(step, " ")
	switch {
	case operation == "lock":
		return fmt.Sprint(now.lock)
	case operation == "ask":
		return fmt.Sprint(now.kernel)
	case operation == "look", operation == "link":
		return c.String()
	case name == "":
		return ""
	case operation == "symlink":
		return fmt.Sprint(c.get(name) != "")
	case operation == "rename":
		return fmt.Sprintf("%q", []string{c.get(name), c.get(name + ".new")})
	case operation == "unlink", operation == "here", slot(name) >= slot(link.Switch):
		return c.get(name)
	}
	file, err := c.leads(name)
	return fmt.Sprintf("%q", []any{c.get(name), c.get(link.Wrapper), file, err != nil})
}

// perform runs an actor from its start to the end of a step.
func (m *machine) perform(at int32, now met) answer {
	if m.moments[at].actor.does != nil {
		return m.append(at, now, answer{}, moment{})
	}
	p := m.bring(at)
	before := m.contents[now.content]
	p.meet(now, before)
	p.goOn()
	m.liveAt = -1
	if now.lock == others && p.at == "lock " {
		return answer{waits: true}
	}
	a := answer{lock: now.lock}
	a.changes = changes(before, m.see(at))
	if now.lock != others {
		a.lock = free
		if m.disk.locked() {
			a.lock = mine
		}
	}
	a = m.append(at, now, a, moment{step: p.at, changes: a.changes, outcome: p.outcome})
	m.liveAt = a.moment
	return a
}

// see returns what is on the disk after a step. It reads the name that the step says it changes, and all others now and
// then: a change that is no step would be found.
func (m *machine) see(at int32) content {
	if len(m.moments)%20 == 0 {
		name := m.disk.foreign()
		if name != "" {
			m.disk.tb.Fatalf("%s makes %s", m.describe(at), name)
		}
		return m.disk.read()
	}
	if changing(m.moments[at].step) {
		_, name, _ := strings.Cut(m.moments[at].step, " ")
		m.disk.readSlot(slot(name))
		m.disk.readSlot(slot(name + ".new"))
	}
	return m.disk.now
}

// bring returns an actor that runs, and has come to a moment. Often it is the one that ran last.
func (m *machine) bring(at int32) *running {
	if m.live != nil && m.liveAt == at {
		return m.live
	}
	m.stop()
	m.runs++
	p := m.launch(m.moments[at].actor)
	for _, q := range m.history(at) {
		p.meet(q.met, m.contents[q.met.content])
		p.goOn()
		m.disk.now = m.disk.now.with(m.moments[q.moment].changes)
		want := m.moments[q.moment].step
		if p.at != want {
			m.disk.tb.Fatalf("%s: the same once more, and it wants to %q instead of %q", m.describe(at), p.at, want)
		}
	}
	m.live = p
	return p
}

// stop ends the actor that ran last.
func (m *machine) stop() {
	if m.live != nil {
		m.live.stop()
	}
	m.live = nil
	m.liveAt = -1
}

func (m *machine) append(at int32, now met, a answer, next moment) answer {
	if len(m.moments) > 300_000 {
		m.disk.tb.Fatalf("it does not end: %s", m.describe(at))
	}
	next.actor = m.moments[at].actor
	next.before = at
	next.met = now
	a.moment = int32(len(m.moments))
	m.moments = append(m.moments, next)
	return a
}

// history is what an actor has met before it came to a moment, and which moment it came to each time.
func (m *machine) history(at int32) (all []question) {
	for ; m.moments[at].before >= 0; at = m.moments[at].before {
		all = append(all, question{at, m.moments[at].met})
	}
	slices.Reverse(all)
	return all
}

func (m *machine) describe(at int32) string {
	steps := []string{}
	for _, q := range m.history(at) {
		steps = append(steps, m.moments[m.moments[q.moment].before].step)
	}
	return m.moments[at].actor.name + ": " + strings.Join(append(steps, m.moments[at].step), ", ")
}

// changing says that a step can change what is on the disk.
func changing(step string) bool {
	operation, _, _ := strings.Cut(step, " ")
	return slices.Contains([]string{"symlink", "link", "rename", "unlink"}, operation)
}

// change is one slot with its new content.
type change struct {
	slot   int
	target string
}

func changes(before, after content) (all []change) {
	for i := range after {
		if before[i] != after[i] {
			all = append(all, change{i, after[i]})
		}
	}
	return all
}

func (c content) with(changes []change) content {
	for _, one := range changes {
		c[one.slot] = one.target
	}
	return c
}
