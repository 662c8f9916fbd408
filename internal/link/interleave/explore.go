// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package interleave

import (
	"fmt"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// setup is where actors begin.
type setup struct {
	setting
	laid     bool // the names lead to the switch; otherwise the binary was copied over them
	kernel   kernel
	recorded detect.Backend // "" if there is no record
	actors   []actor
}

func (s setup) String() string {
	names := []string{}
	for _, a := range s.actors {
		names = append(names, a.name)
	}
	return fmt.Sprintf("%s; %+v, laid %v, %+v, recorded %q", strings.Join(names, " | "), s.setting, s.laid, s.kernel,
		s.recorded)
}

// mostActors is how many are at work at the most.
const mostActors = 3

// state is what there is, and where each actor is.
type state struct {
	content int32
	kernel  kernel
	owner   int8 // who has the lock, noOwner if nobody has
	actors  [mostActors]int32
}

var nobody = [mostActors]int32{absent, absent, absent}

const (
	noOwner = -1
	killed  = -2 // an actor that was killed
	absent  = -1 // none
)

// exploration is all the states that actors come to from one setup.
type exploration struct {
	*machine
	setup
	visited map[state]state // and from where
}

func (m *machine) explore(s setup) *exploration {
	x := &exploration{machine: m, setup: s, visited: map[state]state{}}
	c := laid(s.laid)
	c[slot(aRecord)] = string(s.recorded)
	first := state{content: m.number(c), kernel: s.kernel, owner: noOwner, actors: nobody}
	for i, a := range s.actors {
		first.actors[i] = m.start(a)
	}
	x.visited[first] = first
	x.from(first, 0)
	return x
}

// from explores what can follow. The actor that took the last step goes on first: it runs already.
func (x *exploration) from(now state, last int) {
	x.check(now)
	alive := false
	for n := range mostActors {
		i := (last + n) % mostActors
		at := now.actors[i]
		if at < 0 || x.moments[at].step == "" {
			continue
		}
		next, goesOn := x.take(now, i)
		if goesOn {
			alive = true
			x.visit(now, next, i)
		}
		if x.moments[at].before >= 0 {
			x.visit(now, now.kill(i), i)
		}
	}
	if !alive {
		x.checkEnd(now)
	}
}

func (x *exploration) visit(now, next state, i int) {
	x.checkStep(now, next, i)
	_, known := x.visited[next]
	if !known {
		x.visited[next] = now
		x.from(next, i)
	}
}

// take lets an actor take its next step. It cannot where it waits for the lock. Of a lock that another user holds, no
// call gets hold, and the commands go on without it: whoever else is at work, it is free to them.
func (m *machine) take(now state, i int) (next state, goesOn bool) {
	at := now.actors[i]
	lock := free
	switch {
	case m.place.locked && m.moments[at].actor.kind == calling:
		lock = others
	case m.place.locked, now.owner == noOwner:
	case now.owner == int8(i):
		lock = mine
	default:
		lock = others
	}
	a := m.next(at, met{content: now.content, kernel: now.kernel, lock: lock})
	if a.waits {
		return now, false
	}
	next = now
	next.content = a.content
	next.kernel = a.kernel
	next.actors[i] = a.moment
	switch {
	case m.place.locked:
	case a.lock == mine:
		next.owner = int8(i)
	case lock == mine:
		next.owner = noOwner
	}
	return next, true
}

// kill ends an actor, and releases its lock, at any of its steps.
func (s state) kill(i int) state {
	s.actors[i] = killed
	if s.owner == int8(i) {
		s.owner = noOwner
	}
	return s
}

// alone lets one more actor run in a state in which all others are at their end, and returns how it ended.
func (m *machine) alone(now state, a actor) (state, outcome) {
	now.actors = nobody
	now.actors[0] = m.start(a)
	for m.moments[now.actors[0]].step != "" {
		next, goesOn := m.take(now, 0)
		if !goesOn {
			m.disk.tb.Fatalf("%s never ends", a.name)
		}
		now = next
	}
	return now, m.moments[now.actors[0]].outcome
}

// fail reports what is wrong, and how it came to that.
func (x *exploration) fail(at state, format string, args ...any) {
	x.disk.tb.Helper()
	steps := []string{x.contents[at.content].String()}
	for from := x.visited[at]; from != at; from = x.visited[at] {
		for i, moment := range at.actors {
			before := from.actors[i]
			switch {
			case moment == before:
			case moment == killed:
				steps = append(steps, x.actors[i].name+" is killed before: "+x.moments[before].step)
			default:
				steps = append(steps, x.actors[i].name+": "+x.moments[before].step+" "+x.moments[moment].told())
			}
		}
		at = from
	}
	trace := ""
	for i := len(steps) - 1; i >= 0; i-- {
		trace += "\n\t" + steps[i]
	}
	x.disk.tb.Fatalf("%s: %s%s", x.setup, fmt.Sprintf(format, args...), trace)
}

func (m moment) told() string {
	if m.step != "" || m.actor.does != nil {
		return ""
	}
	return fmt.Sprintf("(the end: %+v)", m.outcome)
}
