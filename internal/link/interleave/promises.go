// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package interleave

import (
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// count is how many actors are of some kinds.
func (s setup) count(kinds ...kind) (n int) {
	for _, a := range s.actors {
		if slices.Contains(kinds, a.kind) {
			n++
		}
	}
	return n
}

// provable is which backends can ever be certain: before any of the names of the actors has appeared, after each of
// them, and so on.
func (s setup) provable() backends {
	now := []kernel{s.kernel}
	for _, a := range s.actors {
		if a.kind == appearing {
			for _, k := range now {
				now = append(now, a.does(k))
			}
		}
	}
	found := backends(0)
	for _, k := range now {
		backend, certain := k.decide("", "")
		if certain {
			found |= of(backend)
		}
	}
	return found
}

// selected is which backends are selected.
func (s setup) selected() (found backends) {
	for _, a := range s.actors {
		if a.kind == selecting {
			found |= of(a.backend)
		}
	}
	return found
}

// check checks what must hold at each moment: no name leads nowhere or to another backend than the other names, and
// what is in the switch was proven, or selected.
func (x *exploration) check(now state) {
	v := x.verdict(now.content)
	if v.wrong != nil {
		x.fail(now, "%v", v.wrong)
	}
	if of(v.stored)&^(x.provable()|x.selected()) != 0 {
		x.fail(now, "%s is in the switch, by a guess", v.stored)
	}
}

// verdict is about a content: what is wrong, and what is in the switch.
type verdict struct {
	wrong  error
	stored detect.Backend
}

func (m *machine) verdict(number int32) verdict {
	for int(number) >= len(m.verdicts) {
		c := m.contents[len(m.verdicts)]
		m.verdicts = append(m.verdicts, verdict{c.wrong(), c.stored()})
	}
	return m.verdicts[number]
}

// checkStep checks what one step of a call may change: only what is certain replaces a record, and a switch that points
// to a program stays.
func (x *exploration) checkStep(before, after state, i int) {
	if before.content == after.content || x.actors[i].kind != calling {
		return
	}
	stored := x.verdict(before.content).stored
	if stored != "" && x.verdict(after.content).stored != stored {
		x.fail(before, "then %s moves the switch away from %s", x.actors[i].name, stored)
	}
	was, is := x.contents[before.content].recorded(), x.contents[after.content].recorded()
	if was != "" && is != "" && was != is && of(is)&^x.provable() != 0 {
		x.fail(before, "then a guess replaces the record %s by %s", was, is)
	}
}

// ended is how those actors ended that nobody has killed.
type ended struct {
	ran      backends // by calls
	certain  backends // by calls that have seen a name themselves
	killed   int
	selected bool // a select ended without an error
}

func (x *exploration) ended(now state) (e ended) {
	for i, at := range now.actors {
		switch {
		case at == killed:
			e.killed++
		case at == absent:
		case x.moments[at].step != "":
			x.fail(now, "%s never ends", x.actors[i].name)
		default:
			o := x.moments[at].outcome
			e.ran |= of(o.ran)
			if o.certain {
				e.certain |= of(o.ran)
			}
			e.selected = e.selected || x.actors[i].kind == selecting && o.err == nil
		}
	}
	return e
}

// checkEnd checks what must hold when nobody is at work any more, and what the next call will run.
func (x *exploration) checkEnd(now state) {
	e := x.ended(now)
	c := x.contents[now.content]
	if now.owner != noOwner {
		x.fail(now, "the lock is left")
	}
	if c.left() > e.killed {
		x.fail(now, "%d temporary links are left, and %d were killed", c.left(), e.killed)
	}
	x.checkCalls(now, e)
	x.checkNext(now, e)
	x.checkReset(now)
	x.checkSelect(now)
	x.checkCertain(now)
}

// checkCalls checks what the calls have run where no administrator is at work.
func (x *exploration) checkCalls(now state, e ended) {
	if x.count(selecting, resetting) > 0 {
		return
	}
	provable := x.provable()
	if x.record && provable == 0 && e.ran == both {
		x.fail(now, "two guesses run two backends")
	}
	if provable != both && e.certain&^provable != 0 {
		x.fail(now, "a call has seen what proves one backend, and runs the other")
	}
	if e.certain != 0 && e.killed == 0 && !x.readOnly && !x.locked && !x.contents[now.content].allWrapped() {
		x.fail(now, "what is certain is not stored for all six commands")
	}
}

// checkNext checks what the next call runs, whatever it would guess: what a name proves now, what is selected, or what
// ran before.
func (x *exploration) checkNext(now state, e ended) {
	var next [2]detect.Backend
	for i, a := range []actor{callNFT, callLegacy} {
		_, o := x.alone(now, a)
		next[i] = o.ran
	}
	stored := x.verdict(now.content).stored
	proven, certain := now.kernel.decide("", "")
	all := of(next[0]) | of(next[1])
	switch {
	case x.record && x.count(resetting) == 0 && e.ran != 0 && all == both:
		x.fail(now, "after a call, the next ones run two backends")
	case x.record && x.count(resetting, selecting) == 0 && x.provable() == 0 && e.ran != 0 && all != e.ran:
		x.fail(now, "after a guess, the next call runs the other backend")
	case stored != "" && all != of(stored):
		x.fail(now, "%s is in the switch, and the next call runs the other", stored)
	case stored == "" && certain && all != of(proven):
		x.fail(now, "%s is proven, and the next call runs the other", proven)
	case e.selected && x.count(selecting, resetting) == 1 && all != x.selected():
		x.fail(now, "after select, the next call runs the other backend")
	}
}

// checkReset checks that a reset forgets all, at whatever point the others were killed.
func (x *exploration) checkReset(now state) {
	after, o := x.alone(now, resets)
	c := x.contents[after.content]
	if c.recorded() != "" && x.record {
		x.fail(now, "a reset leaves the record")
	}
	stuck := x.readOnly && c.stored() != ""
	unlaid := !c.wrapped()
	if (o.err == nil) == (stuck || unlaid) || c.stored() != "" && !stuck {
		x.fail(now, "a reset ends with %v", o.err)
	}
}

// checkSelect checks that the next select changes the switch, and leaves no temporary link of it.
func (x *exploration) checkSelect(now state) {
	if x.readOnly {
		return
	}
	selects := selectLegacy
	if x.verdict(now.content).stored == detect.Legacy {
		selects = selectNFT
	}
	after, o := x.alone(now, selects)
	c := x.contents[after.content]
	unlaid := !c.wrapped() || c.bypassed() // a call was killed that adopted a copy: install helps
	changed := c.stored() == selects.backend && c.get(link.Switch+".new") == ""
	if (o.err == nil) == unlaid || !unlaid && !changed {
		x.fail(now, "a select ends with %v, and leaves %s", o.err, c)
	}
}

// checkCertain checks that the next certain answer is recorded and stored, and leaves no temporary link of either. That
// of one of the six commands can stay, if a call was killed that adopted a copy.
func (x *exploration) checkCertain(now state) {
	proven := x.contents[now.content].recorded().Other()
	if x.verdict(now.content).stored != "" || proven == "" {
		return
	}
	then := now
	then.kernel = kernel{hint: of(proven)}
	after, o := x.alone(then, callNFT)
	c := x.contents[after.content]
	stores := !x.readOnly && !x.locked
	recorded := c.recorded() == proven && c.get(aRecord+".new") == ""
	stored := c.stored() == proven && c.get(link.Switch+".new") == ""
	if o.ran != proven || !recorded || stores && !stored {
		x.fail(now, "%s is certain, and the next call runs %s, and leaves %s", proven, o.ran, c)
	}
}
