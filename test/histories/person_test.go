// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"slices"
	"strings"
)

// person judges the commands of the wrapper.
func (m *model) person(e event, k kernel, r result) *violation {
	mode := strings.TrimSpace(r.stdout)
	status := func(want int) string { return fmt.Sprintf("test $ran -eq %d", want) }
	var next []world
	switch e.class {
	case selectsMode, resets:
		if r.status != 0 {
			if r.status == 1 && m.Root == "ro" && m.remembers(false) != yes && r.sw == m.sw {
				return nil // neither can be done
			}
			return broken(status(0), "%s: status %d, %s", e.text(), r.status, r.stderr)
		}
		for _, w := range m.worlds {
			if e.class == resets {
				next = append(next, world{}, world{user: w.user})
				continue
			}
			// What a person says holds, certain or not.
			next = append(next, world{memory{mode: e.mode, certain: true}, w.user}, world{memory{mode: e.mode, person: true}, w.user})
		}
		want := e.mode
		if e.class == resets {
			want = ""
		}
		if m.Root == "rw" && r.sw != want {
			return m.switched(want, "%s: the switch points to %q", e.text(), r.sw)
		}
	default:
		if r.status != 0 && r.status != 3 {
			if r.status == 1 && e.class == selects && m.Root == "ro" && m.remembers(false) != yes {
				return nil
			}
			return broken(status(0), "%s: status %d, %s", e.text(), r.status, r.stderr)
		}
		var could []string
		for _, w := range m.worlds {
			for _, a := range m.answers(w, k, false, true) {
				could = append(could, fmt.Sprint(a.mode, []string{" not certain", " perhaps certain", " certain"}[a.certain]))
				if a.mode != mode || a.certain == yes && r.status == 3 || a.certain == no && r.status == 0 {
					continue
				}
				if e.class == selects && r.status == 0 {
					w.root = memory{mode: mode, certain: true}
				}
				next = append(next, w)
			}
		}
		if len(next) == 0 {
			slices.Sort(could)
			return broken(status(3-r.status), "%s: %s, status %d; it should have been %q", e.text(), mode, r.status, slices.Compact(could))
		}
		want := m.sw
		if e.class == selects && r.status == 0 && m.Root == "rw" {
			want = mode
		}
		if r.sw != want {
			return m.switched(want, "%s: the switch points to %q", e.text(), r.sw)
		}
	}
	m.sw, m.worlds = r.sw, next
	return nil
}

// restarted is a new life: what was remembered in the old one is gone, or about another one.
func (m *model) restarted(e event, sw string) {
	m.worlds, m.sw = []world{{}}, sw
	m.taken = m.taken && e.command != ": all"
}
