// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"slices"
	"strings"
)

// A violation is a broken promise, and a shell command that fails because of it, right after the event.
type violation struct {
	text, check string
	at          int // which event
}

func broken(check, format string, args ...any) *violation {
	return &violation{text: fmt.Sprintf(format, args...), check: check}
}

// outcome is a way from one world to the next.
type outcome struct {
	answer
	next world
}

func (e event) deed() deed {
	switch e.class {
	case reads, checks:
		return looking
	case removes, changes:
		return changing
	}
	return adding
}

// judge compares what an event did with what the model allows, and updates the model.
func (m *model) judge(e event, before kernel, r result) *violation {
	switch {
	case r.names != "":
		return broken("test -e /usr/sbin/iptables", "%s", r.names)
	case e.class <= hostile:
		m.taken = m.taken || e.class == hostile
		return nil
	case e.class == restarts:
		m.restarted(e, r.sw)
		return nil
	case e.class >= strict:
		return m.person(e, before, r)
	}
	disturbed := e.class >= refused
	for line := range strings.Lines(r.stderr) {
		// iptables itself may complain where the status says so.
		own := strings.HasPrefix(line, "# Warning: ip") || !strings.HasPrefix(line, "iptables-wrapper: ") && (r.status != 0 || disturbed)
		if !own && e.class < momentary {
			return broken(`! grep -v "^# Warning: ip" "$H/err"`, "on stderr: %s", line)
		}
	}
	if e.class == reads && e.user && m.Group != 0 && r.status == 1 {
		r.status = 0 // iptables-legacy-save cannot list the tables either
	}
	seen, v := e.seen(before, r, m.remembers(e.user) == yes || m.sw != "")
	if v != nil {
		return v
	}
	m.busy = e.kind == busy
	possible := m.outcomes(e, before)
	m.busy = false
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
		return e.wrong(seen, wanted, r.status)
	}
	if r.sw != m.sw && !slices.ContainsFunc(possible, func(o outcome) bool { return o.mode == r.sw && m.stores(o.answer, e.deed(), e.user) }) {
		return m.switched("", "the switch moved to %s, which is not certain", r.sw)
	}
	m.sw = r.sw
	if !disturbed {
		m.worlds = nil
	} // otherwise it can have been as if it had not been
	for _, o := range possible {
		if e.class != powerless && !slices.Contains(m.worlds, o.next) {
			m.worlds = append(m.worlds, o.next)
		}
		m.guessed = m.guessed || e.deed() == adding && o.certain != yes
	}
	if e.class == permanent { // what it could not ask for good makes it a guess of its own
		for _, mode := range modes {
			m.worlds = append(m.worlds, world{root: memory{mode: mode, blind: true}, user: m.worlds[0].user})
		}
	}
	m.guessed = m.guessed || e.class == momentary || e.class == permanent || e.class == overrides
	return nil
}

// switched complains about the switch.
func (m *model) switched(want, format string, args ...any) *violation {
	file := "iptables-wrapper"
	if want != "" {
		file = "xtables-" + want + "-multi"
	}
	return broken(`test "$(basename "$(readlink /usr/sbin/iptables-current)")" = `+file, format, args...)
}

// outcomes are what a call may decide, and what may be remembered then.
func (m *model) outcomes(e event, k kernel) (list []outcome) {
	for _, w := range m.worlds {
		if e.class == overrides && m.sw == "" {
			list = append(list, outcome{answer{e.mode, no, remembered}, w})
			continue
		}
		for _, a := range m.answers(w, k, e.user, false) {
			for _, next := range m.after(w, a, e.deed(), e.user) {
				list = append(list, outcome{a, next})
			}
		}
	}
	return list
}

// seen returns the backends that the call can have run. It is not steady where nothing can be remembered: then each of several
// calls decides.
func (e event) seen(before kernel, r result, steady bool) (list []string, v *violation) {
	for i, mode := range modes {
		if other := modes[1-i]; before.of(other).text == r.kernel.of(other).text {
			list = append(list, mode)
		}
	}
	switch first, _, _ := strings.Cut(r.stdout, "\n"); {
	case e.class == checks || e.class == removes:
		if r.status > 1 {
			return nil, broken("test $ran -le 1", "status %d: %s", r.status, r.stderr)
		}
		return slices.DeleteFunc(list, func(mode string) bool { return before.of(mode).has(e.addresses()[0]) != (r.status == 0) }), nil
	case e.class == refused || e.class == powerless:
		if r.status == 0 || len(list) < 2 {
			return nil, broken("test $ran -ne 0", "status %d of a call that cannot write", r.status)
		}
	case r.status != 0 && e.class < refused:
		return nil, broken("test $ran -eq 0", "status %d: %s", r.status, r.stderr)
	case strings.Contains(first, "(nf_tables)"):
		return []string{"nft"}, nil
	case strings.Contains(first, "(legacy)") || strings.HasPrefix(first, "# Generated by"):
		return []string{"legacy"}, nil
	case e.class >= adds:
		at := map[string]bool{}
		for _, address := range e.addresses() {
			for _, mode := range modes {
				if r.kernel.of(mode).has(address) && !before.of(mode).has(address) {
					at[mode] = true
				}
			}
		}
		switch {
		case len(at) == 2 && steady:
			return nil, broken("test $(for address in "+strings.Join(e.addresses(), " ")+"; do where $address; done | sort -u | wc -l) -eq 1", "written to both backends")
		case len(at) == 0 && e.class < refused:
			return nil, broken(fmt.Sprintf(`test "$(where %s)"`, e.addresses()[0]), "nothing was written")
		case len(at) == 1:
			return slices.DeleteFunc(slices.Clone(modes), func(mode string) bool { return !at[mode] }), nil
		}
		return modes, nil
	}
	return list, nil
}

// wrong says that a call ran one backend, and should have run another.
func (e event) wrong(seen, wanted []string, status int) *violation {
	want, other := wanted[0], modes[0]
	if want == other {
		other = modes[1]
	}
	// script writes what was there before to $H.
	check := fmt.Sprintf(`saved %s | sed '/^#/d' | cmp - "$H/%[1]s"`, other)
	switch {
	case strings.HasSuffix(e.command, "-S"): // it may have made a table
	case e.class == reads:
		check = fmt.Sprintf(`test "$(backend <"$H/out")" = %s`, want)
	case e.class == adds:
		check = fmt.Sprintf(`test "$(where %s)" = %s`, e.addresses()[0], want)
	case e.class == checks || e.class == removes:
		check = fmt.Sprintf("test $ran -ne %d", status)
	}
	return broken(check, "it ran %v, and should have run %s", seen, want)
}
