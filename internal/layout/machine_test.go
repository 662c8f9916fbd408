// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// machine knows what each step of each actor does. It finds out by running the actor, the real code on a real file
// system, up to that step: before each earlier one, the disk gets the content that the actor met there. What one step
// does is found out once, and serves every interleaving in which an actor that has seen the same meets the same.
type machine struct {
	disk  *disk
	place setting

	contents []content
	numbers  map[string]int32 // of contents
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
	before  int32   // the moment before, -1 at the start
	met     met     // what it met there
	changes content // what its last step changed
	step    string  // what it is about to do, "" at its end
	waits   bool    // it has found the lock taken, and tries again
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
	changes content // "" removes
	content int32
	kernel  kernel
	lock    holder
	waits   bool
}

func newMachine(d *disk, place setting) *machine {
	return &machine{disk: d, place: place, numbers: map[string]int32{}, starts: map[string]int32{},
		known: map[question]answer{}, alike: map[string]answer{}}
}

func (m *machine) number(c content) int32 {
	key := c.String()
	n, known := m.numbers[key]
	if !known {
		n = int32(len(m.contents))
		m.contents = append(m.contents, maps.Clone(c))
		m.numbers[key] = n
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
	after := maps.Clone(m.contents[now.content])
	after.change(a.changes)
	a.content = m.number(after)
	if !strings.HasPrefix(m.moments[at].step, "write") && m.moments[at].step != "appear" {
		a.kernel = now.kernel
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
	case slices.Contains([]string{"ask", "write", "appear"}, operation):
		return fmt.Sprintf("%+v", now.kernel)
	case operation == "become", operation == "end":
		return ""
	case operation == "symlink":
		return fmt.Sprint(c[m.path(name)] != "")
	case operation == "rename":
		return fmt.Sprintf("%q", []string{c[m.path(name)], c[m.path(name)+".new"]})
	case operation == "unlink", name == Switch, name == memory.Name:
		return c[m.path(name)]
	}
	mode, err := c.leads(m.disk.commands, name)
	return fmt.Sprintf("%q", []any{c[m.disk.commands+"/"+name], c[m.disk.commands+"/"+Wrapper], mode, err != nil})
}

func (m *machine) path(name string) string {
	if strings.HasPrefix(name, memory.Name) && m.place.dev {
		return m.disk.dev + "/" + name
	}
	return m.disk.commands + "/" + name
}

// perform runs an actor from its start to the end of a step.
func (m *machine) perform(at int32, now met) answer {
	if m.moments[at].actor.does != nil {
		return m.append(at, now, answer{kernel: m.moments[at].actor.does(now.kernel)}, moment{})
	}
	p := m.bring(at)
	before := m.contents[now.content]
	p.meet(now, before)
	p.goOn()
	m.liveAt = -1
	if now.lock == others && p.at == "lock " {
		return answer{waits: true}
	}
	a := answer{kernel: *p.kernel, lock: now.lock, changes: changes(before, m.disk.read())}
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
		m.disk.changed(m.moments[q.moment].changes)
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

func changes(before, after content) content {
	all := content{}
	for path := range before {
		if after[path] == "" {
			all[path] = ""
		}
	}
	for path, target := range after {
		if before[path] != target {
			all[path] = target
		}
	}
	return all
}

// running is an actor that runs. It stops before each of its steps.
type running struct {
	process
	at      string // the step, "" at its end
	proceed chan bool
	reached chan string
	outcome outcome
}

// static says that nobody changes what has this name.
func static(name string) bool {
	name = filepath.Base(strings.TrimSuffix(name, ".new"))
	return !slices.Contains(append(exec.Names(), Switch, Wrapper, memory.Name), name)
}

func (m *machine) launch(a actor) *running {
	r := &running{proceed: make(chan bool), reached: make(chan string)}
	r.process = process{disk: m.disk, kernel: &kernel{}, place: m.place}
	r.step = func(operation, name string) {
		if operation == "stat" && static(name) {
			return
		}
		r.reached <- operation + " " + name
		goOn := <-r.proceed
		if !goOn {
			runtime.Goexit()
		}
	}
	go func() {
		defer close(r.reached)
		r.outcome = a.run(&r.process)
	}()
	r.at = <-r.reached
	return r
}

// meet gives an actor what it is to meet.
func (r *running) meet(now met, c content) {
	*r.kernel = now.kernel
	r.disk.set(c)
	if strings.HasPrefix(r.at, "lock") && now.lock == others {
		r.disk.holdLock(true)
	}
}

func (r *running) goOn() {
	lock := strings.HasPrefix(r.at, "lock")
	r.proceed <- true
	r.at = <-r.reached
	if lock {
		r.disk.holdLock(false)
	}
}

// stop ends an actor that has not come to its end.
func (r *running) stop() {
	for r.at != "" {
		r.proceed <- false
		r.at = <-r.reached
	}
}
