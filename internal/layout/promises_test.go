// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// remembers reports whether there is a place for the memory.
func (s setup) remembers() bool { return s.dev || !s.readOnly }

// proven reports whether the switch may be at a program: somebody knew, or it was an administrator. Rules that calls
// wrote by a guess count as the host's for a select, and for who comes after a reset.
func (s setup) proven() bool {
	certain := strings.Contains(s.remembered, " certain ")
	known := s.kernel.program != 0 || s.kernel.rules != 0 && s.kernel.rules != both
	return certain || known || s.count(kubelet, hostProgram, selecting, guessing, resetting) > 0
}

// verdict is about a content: what is wrong, and whether the switch is at a program.
type verdict struct {
	wrong  error
	stored bool
}

func (m *machine) verdict(number int32) verdict {
	for int(number) >= len(m.verdicts) {
		c := m.contents[len(m.verdicts)]
		m.verdicts = append(m.verdicts, verdict{c.wrong(), storedMode(c.get(Switch)) != ""})
	}
	return m.verdicts[number]
}

// check checks what must hold at each moment.
func (x *exploration) check(now state) {
	v := x.verdict(now.content)
	if v.wrong != nil {
		x.fail(now, "%v", v.wrong)
	}
	if v.stored && !x.proven() {
		x.fail(now, "the switch is at a program, by a guess")
	}
	remembered := x.contents[now.content].get(memory.Name)
	// Of two that replace the memory, one may remove the temporary link of the other, and be killed.
	replacing := x.count(selecting, guessing)
	if x.count(kubelet) > 0 {
		replacing += x.count(adding, deleting, reading)
	}
	if v.stored && remembered == "" && x.count(resetting) == 0 && replacing < 2 {
		x.fail(now, "the switch is at a program, and nothing is remembered: a kill must leave the memory alone, not it")
	}
}

// checkEnd checks what must hold when nobody is at work any more, and what the next call will run.
func (x *exploration) checkEnd(now state) {
	if now.owner != noOwner {
		x.fail(now, "the lock is left")
	}
	ran := backends(0)
	var byKubelet bool
	var selected evidence.Mode
	for i, at := range now.actors {
		if at < 0 {
			continue
		}
		o := x.moments[at].outcome
		if x.moments[at].step != "" {
			x.fail(now, "%s waits for ever", x.actors[i].name)
		}
		if o.binds {
			ran |= of(o.ran)
		}
		byKubelet = byKubelet || o.byKubelet
		if x.actors[i].kind == selecting && o.err == nil {
			selected = x.actors[i].mode
		}
	}
	administrators := x.count(selecting, guessing, resetting)
	quiet := x.remembers() && administrators+x.count(kubelet) == 0
	final := selected != "" && administrators == 1 && x.count(kubelet) == 0
	heard := byKubelet && x.count(selecting, guessing) == 0 && x.count(kubelet) == 1
	if quiet && ran == both {
		x.fail(now, "two backends run")
	}
	for _, a := range []actor{callNFT, callLegacy} {
		_, o := x.alone(now, a)
		switch {
		case quiet && ran != 0 && o.ran != ran.mode():
			x.fail(now, "the next %s runs %s", a.name, o.ran)
		case heard && o.ran != now.kernel.kubelet.mode():
			x.fail(now, "after kubelet's word, the next %s runs %s", a.name, o.ran)
		case final && o.ran != selected:
			x.fail(now, "after select, the next %s runs %s", a.name, o.ran)
		}
	}
	x.carriedOut(now)
}

// carriedOut checks that a certain memory, which a call that was killed may have left alone, moves the switch at the
// next call that changes something.
func (x *exploration) carriedOut(now state) {
	if x.readOnly || x.count(kubelet) > 0 {
		return
	}
	said := x.contents[now.content].get(memory.Name)
	certain := strings.Contains(said, " certain ")
	after, o := x.alone(now, deletes)
	if certain && !x.verdict(after.content).stored {
		x.fail(now, "the memory is certain, %s runs %s, and the switch stays at the wrapper", deletes.name, o.ran)
	}
}

// count is how many actors are of some kinds.
func (s setup) count(kinds ...kind) (n int) {
	for _, a := range s.actors {
		if slices.Contains(kinds, a.kind) {
			n++
		}
	}
	return n
}
