// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"slices"
	"strings"
)

// A violation is a broken promise.
type violation struct {
	text, outcome string // outcome is that of prelude.sh
	at            int    // which event
}

func broken(format string, args ...any) *violation {
	return &violation{text: fmt.Sprintf(format, args...)}
}

// outcome is a way from one world to the next.
type outcome struct {
	answer
	next world
}

// judge compares what an event did with what the model allows, and updates the model.
func (m *model) judge(e event, before kernel, r result) *violation {
	m.busy = e.kind == busy
	switch {
	case r.names != "":
		return broken("the names: %s", r.names)
	case e.class <= hostile:
		m.taken = m.taken || e.class == hostile
		return nil
	case e.class == restarts:
		// What was remembered in the old life is gone, or about another one.
		m.worlds, m.sw, m.taken = []world{{}}, r.sw, m.taken && e.command != ": all"
		return nil
	case e.class >= strict:
		return m.person(e, before, r)
	}
	disturbed := e.class >= refused
	for line := range strings.Lines(r.stderr) {
		// iptables itself may complain where the status says so.
		own := !strings.HasPrefix(line, "iptables-wrapper: ") &&
			(r.status != 0 || disturbed || strings.HasPrefix(line, "# Warning: ip"))
		if !own && e.class < momentary {
			return broken("on stderr: %s", line)
		}
	}
	if e.class == reads && e.who == 1 && m.Group != 0 && r.status == 1 {
		r.status = 0 // iptables-legacy-save cannot list the tables either
	}
	seen, v := e.seen(before, r, m.remembers(e.who) == yes || m.sw != "")
	if v != nil {
		return v
	}
	possible := m.outcomes(e, before)
	if e.kind == meanwhile { // before or after the host's rules
		later := before
		later.of(e.mode).rules += 6
		m.guessed = true
		possible = append(possible, m.outcomes(e, later)...)
	}
	var wanted []string
	possible = slices.DeleteFunc(possible, func(o outcome) bool {
		wanted = append(wanted, o.mode)
		return !slices.Contains(seen, o.mode)
	})
	if !disturbed && len(possible) == 0 {
		return broken("it ran %v, and should have run one of %v", seen, wanted)
	}
	if r.sw != m.sw && !slices.ContainsFunc(possible,
		func(o outcome) bool { return o.mode == r.sw && m.stores(o.answer, e) }) {
		return broken("the switch moved to %q, which is not certain", r.sw)
	}
	m.sw = r.sw
	if !disturbed {
		m.worlds = nil
	} // otherwise it can have been as if it had not been
	for _, o := range possible {
		if e.class != powerless && !slices.Contains(m.worlds, o.next) {
			m.worlds = append(m.worlds, o.next)
		}
		m.guessed = m.guessed || e.class >= adjusts && o.certain != yes
	}
	if e.class == permanent { // what it could not ask for good makes it a guess of its own
		for _, mode := range modes {
			m.worlds = append(m.worlds, world{{mode: mode, blind: true}, m.worlds[0][1]})
		}
	}
	m.guessed = m.guessed || e.class == momentary || e.class == permanent || e.class == overrides
	return nil
}

// outcomes are what a call may decide, and what may be remembered then.
func (m *model) outcomes(e event, k kernel) (list []outcome) {
	for _, w := range m.worlds {
		for _, a := range m.answers(w, k, e) {
			for _, next := range m.after(w, a, e) {
				list = append(list, outcome{a, next})
			}
		}
	}
	return list
}

// seen returns the backends that the call can have run. It is not steady where nothing can be remembered: then each of
// several calls decides.
func (e event) seen(before kernel, r result, steady bool) (list []string, v *violation) {
	for i, mode := range modes {
		if other := modes[1-i]; before.of(other).text == r.kernel.of(other).text {
			list = append(list, mode)
		}
	}
	switch {
	case e.class == checks || e.class == removes:
		if r.status > 1 {
			return nil, broken("status %d: %s", r.status, r.stderr)
		}
		isAt := e.addresses()[0]
		wasFound := r.status == 0
		return slices.DeleteFunc(list, func(mode string) bool { return before.of(mode).has(isAt) != wasFound }), nil
	case e.class == refused || e.class == powerless:
		if r.status == 0 || len(list) < 2 {
			return nil, broken("status %d of a call that cannot write", r.status)
		}
	case r.status != 0 && e.class < refused:
		return nil, broken("status %d: %s", r.status, r.stderr)
	case r.backend != "":
		return []string{r.backend}, nil
	case e.class >= adds:
		at := slices.DeleteFunc(slices.Clone(modes), func(mode string) bool {
			return !slices.ContainsFunc(e.addresses(), func(a string) bool {
				return r.kernel.of(mode).has(a) && !before.of(mode).has(a)
			})
		})
		switch {
		case len(at) == 2 && steady:
			return nil, broken("written to both backends")
		case len(at) == 0 && e.class < refused:
			return nil, broken("nothing was written")
		case len(at) == 1:
			return at, nil
		}
		return modes, nil
	}
	return list, nil
}

// person judges the commands of the wrapper.
func (m *model) person(e event, k kernel, r result) *violation {
	switch {
	case r.status == 0, r.status == 3 && e.class <= selects:
	case r.status == 1 && e.class > strict && m.Root == "ro" && m.remembers(0) != yes:
		return nil // neither switch nor memory can be had
	default:
		return broken("%s: status %d, %s", e.text(), r.status, r.stderr)
	}
	mode, sw := strings.TrimSpace(r.stdout), m.sw
	if m.Root == "rw" && r.status == 0 && e.class > strict {
		sw = mode
		if e.class == resets {
			sw = ""
		}
	}
	var next []world
	for _, w := range m.worlds {
		switch e.class {
		case resets:
			next = append(next, world{}, world{1: w[1]})
		case selectsMode: // what a person says holds, certain or not
			next = append(next, world{{mode: e.mode, certain: yes}, w[1]}, world{{mode: e.mode, person: true}, w[1]})
		default:
			for _, a := range m.answers(w, k, e) {
				if e.class == strict && a.contradicted(k) {
					a.certain = maybe // kubelet's word is not held against the host
				}
				if a.mode != mode || a.certain == yes && r.status == 3 || a.certain == no && r.status == 0 {
					continue
				}
				if e.class == selects && r.status == 0 {
					w[0] = memory{mode: mode, certain: yes}
				}
				next = append(next, w)
			}
		}
	}
	if len(next) == 0 {
		return broken("%s: %s, status %d; what may be remembered: %+v", e.text(), mode, r.status, m.worlds)
	}
	if r.sw != sw || e.class == selectsMode && mode != e.mode {
		return broken("%s: %q, and the switch points to %q", e.text(), mode, r.sw)
	}
	m.sw, m.worlds = r.sw, next
	return nil
}
