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
	switch e.kind {
	case version, save, list, checked, powerless, strict:
		return reads
	case removed, flush, unchain:
		return changes
	}
	return adds
}

// judge compares what an event did with what the model allows, and updates the model.
func (m *model) judge(e event, before kernel, r result) *violation {
	if r.names != "" {
		return broken("test -e /usr/sbin/iptables", "%s", r.names)
	}
	switch {
	case e.kind <= hostile:
		m.taken = m.taken || e.kind == hostile
		if r.status != 0 && e.kind != hostile && e.kind != hint && e.kind != canary && e.kind != native {
			return broken("false", "the host's own command: status %d, %s", r.status, r.stderr)
		}
		return nil
	case e.kind == strict, e.kind == selects, e.kind == selectMode, e.kind == reset:
		return m.person(e, before, r)
	}
	// Nothing but iptables itself says anything: a wrapped call is silent.
	for line := range strings.Lines(r.stderr) {
		quiet := slices.Contains([]kind{checked, removed, refused, powerless, momentary, permanent, killed, policy}, e.kind)
		if strings.Contains(line, "iptables-wrapper: ") && e.kind < momentary || !quiet && !strings.HasPrefix(line, "# Warning: ip") {
			return broken(`! grep -q iptables-wrapper: "$H/err"`, "on stderr: %s", line)
		}
	}
	seen, v := e.seen(before, r, m.remembers(e.user) == yes || m.sw != "")
	if v != nil {
		return v
	}
	m.busy = e.with == "busy"
	possible := m.outcomes(e, before)
	if e.kind == burstAndRules { // before or after the host's rules
		later := before
		later.of(e.mode).rules += 6
		m.guessed = true
		possible = append(possible, m.outcomes(e, later)...)
	}
	m.busy = false
	wanted := map[string]bool{}
	possible = slices.DeleteFunc(possible, func(o outcome) bool {
		wanted[o.mode] = true
		return !slices.Contains(seen, o.mode)
	})
	undisturbed := e.kind < momentary && e.kind != refused && e.kind != powerless
	if undisturbed && len(possible) == 0 {
		return e.wrong(seen, wanted, r.status)
	}
	if r.sw != m.sw && !slices.ContainsFunc(possible, func(o outcome) bool { return o.mode == r.sw && m.stores(o.answer, e.deed(), e.user) }) {
		return broken(`test "$(readlink /usr/sbin/iptables-current)" = iptables-wrapper`, "the switch moved to %s, which is not certain", r.sw)
	}
	m.sw = r.sw
	var next []world
	if !undisturbed { // it can have been as if it had not been
		next = append(next, m.worlds...)
	}
	for _, o := range possible {
		if !slices.Contains(next, o.next) && e.kind != powerless {
			next = append(next, o.next)
		}
		if e.deed() == adds && o.certain != yes {
			m.guessed = true
		}
	}
	if e.kind == permanent { // what it could not ask for good makes it a guess of its own
		for _, mode := range modes {
			next = append(next, world{root: memory{mode: mode, blind: true}, user: m.worlds[0].user})
		}
	}
	m.guessed = m.guessed || e.kind == momentary || e.kind == permanent || e.kind == override
	m.worlds = next
	return nil
}

// outcomes are what a call may decide, and what may be remembered then.
func (m *model) outcomes(e event, k kernel) (list []outcome) {
	for _, w := range m.worlds {
		if e.kind == override && m.sw == "" {
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

// seen returns the backends that the call can have run.
func (e event) seen(before kernel, r result, steady bool) (list []string, v *violation) {
	for i, mode := range modes {
		if other := modes[1-i]; before.of(other).text == r.kernel.of(other).text {
			list = append(list, mode)
		}
	}
	ok := func(status int) string { return fmt.Sprintf("test $ran -eq %d", status) }
	switch e.kind {
	case version, save:
		if r.stdout == "" { // no tables to save
			break
		}
		first, _, _ := strings.Cut(r.stdout, "\n")
		list = []string{map[bool]string{true: "nft", false: "legacy"}[strings.Contains(first, "(nf_tables)")]}
	case checked, removed:
		if r.status > 1 {
			return nil, broken(ok(1), "status %d: %s", r.status, r.stderr)
		}
		list = slices.DeleteFunc(list, func(mode string) bool { return before.of(mode).has(e.source()) != (r.status == 0) })
		return list, nil
	case add, restore, burst, burstAndRules, override, momentary, permanent, killed:
		at := map[string]bool{}
		for _, source := range e.sources() {
			for _, mode := range modes {
				if r.kernel.of(mode).has(source) && !before.of(mode).has(source) {
					at[mode] = true
				}
			}
		}
		switch {
		case len(at) == 2 && !steady:
			list = modes // known limit: where nothing can be remembered, each call decides
		case len(at) == 2:
			return nil, broken("test $(for address in "+strings.Join(e.sources(), " ")+"; do where $address; done | sort -u | wc -l) -eq 1", "written to both backends")
		case len(at) == 1:
			list = slices.DeleteFunc(slices.Clone(modes), func(mode string) bool { return !at[mode] })
		case e.kind < momentary:
			return nil, broken(ok(0), "nothing was written: status %d, %s", r.status, r.stderr)
		default:
			list = modes
		}
	case refused, powerless:
		if r.status == 0 || len(list) < 2 {
			return nil, broken(ok(2), "status %d of a call that cannot write", r.status)
		}
		return list, nil
	}
	if r.status != 0 && e.kind < momentary {
		return nil, broken(ok(0), "status %d: %s", r.status, r.stderr)
	}
	return list, nil
}

// wrong says that a call ran one backend, and should have run another.
func (e event) wrong(seen []string, wanted map[string]bool, status int) *violation {
	want := "neither"
	for mode := range wanted {
		want = mode
	}
	// Of what is not the wanted one, nothing has changed. script writes what was there before to $H.
	check := fmt.Sprintf(`saved %s | sed '/^#/d' | cmp - "$H/%[1]s"`, map[bool]string{true: "legacy", false: "nft"}[want == "nft"])
	switch e.kind {
	case version, save:
		check = fmt.Sprintf(`test "$(backend <"$H/out")" = %s`, want)
	case add, restore, burst, burstAndRules:
		check = fmt.Sprintf(`test "$(where %s)" = %s`, e.sources()[0], want)
	case removed, checked:
		check = fmt.Sprintf("test $ran -ne %d", status)
	}
	return broken(check, "it ran %v, and should have run %s", seen, want)
}

// person judges the commands of the wrapper.
func (m *model) person(e event, k kernel, r result) *violation {
	mode := strings.TrimSpace(r.stdout)
	status := func(want int) string { return fmt.Sprintf("test $ran -eq %d", want) }
	var next []world
	switch e.kind {
	case selectMode, reset:
		if r.status != 0 {
			if r.status == 1 && m.Root == "ro" && m.remembers(false) != yes && r.sw == m.sw {
				return nil // neither can be done
			}
			return broken(status(0), "%s: status %d, %s", e.command(), r.status, r.stderr)
		}
		for _, w := range m.worlds {
			if e.kind == reset {
				next = append(next, world{}, world{user: w.user})
				continue
			}
			// What a person says holds, certain or not.
			next = append(next, world{memory{mode: e.mode, certain: true}, w.user}, world{memory{mode: e.mode, person: true}, w.user})
		}
		if want := map[bool]string{true: e.mode}[e.kind == selectMode]; m.Root == "rw" && r.sw != want {
			return broken(`test "$(readlink /usr/sbin/iptables-current)" = `+map[bool]string{true: "xtables-" + want + "-multi", false: "iptables-wrapper"}[want != ""], "%s: the switch points to %q", e.command(), r.sw)
		}
	default:
		if r.status != 0 && r.status != 3 {
			if r.status == 1 && e.kind == selects && m.Root == "ro" && m.remembers(false) != yes {
				return nil
			}
			return broken(status(0), "%s: status %d, %s", e.command(), r.status, r.stderr)
		}
		var could []string
		for _, w := range m.worlds {
			for _, a := range m.answers(w, k, false, true) {
				could = append(could, fmt.Sprint(a.mode, []string{" not certain", " perhaps certain", " certain"}[a.certain]))
				if a.mode != mode || a.certain == yes && r.status == 3 || a.certain == no && r.status == 0 {
					continue
				}
				if e.kind == selects && r.status == 0 {
					w.root = memory{mode: mode, certain: true}
				}
				next = append(next, w)
			}
		}
		if len(next) == 0 {
			slices.Sort(could)
			return broken(status(3-r.status), "%s: %s, status %d; it should have been %q", e.command(), mode, r.status, slices.Compact(could))
		}
		want := m.sw
		if e.kind == selects && r.status == 0 && m.Root == "rw" {
			want = mode
		}
		if r.sw != want {
			return broken(`test "$(readlink /usr/sbin/iptables-current)" = `+map[bool]string{true: "xtables-" + want + "-multi", false: "iptables-wrapper"}[want != ""], "%s: the switch points to %q instead of %q", e.command(), r.sw, want)
		}
	}
	m.sw, m.worlds = r.sw, next
	return nil
}

// restarted is a new life: root's memory in /dev and what was in the old /dev/shm is gone, or about another life.
func (m *model) restarted(fresh string, sw string) {
	m.worlds, m.sw = []world{{}}, sw
	if fresh == "all" {
		m.taken = false
	}
}
