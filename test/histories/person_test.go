// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"strings"
)

// person judges the commands of the wrapper.
func (m *model) person(e event, k kernel, r result) *violation {
	switch {
	case r.status == 0, r.status == 3 && e.class <= selects:
	case r.status == 1 && e.class > strict && m.Root == "ro" && m.remembers(false) != yes:
		return nil // neither switch nor memory can be had
	default:
		return broken("%s: status %d, %s", e.text(), r.status, r.stderr)
	}
	mode, sw := strings.TrimSpace(r.stdout), m.sw
	if m.Root == "rw" && r.status == 0 && e.class > strict {
		if sw = mode; e.class == resets {
			sw = ""
		}
	}
	var next []world
	var could []string
	for _, w := range m.worlds {
		switch e.class {
		case resets:
			next = append(next, world{}, world{user: w.user})
		case selectsMode: // what a person says holds, certain or not
			next = append(next, world{memory{mode: e.mode, certain: true}, w.user}, world{memory{mode: e.mode, person: true}, w.user})
		default:
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
	}
	if len(next) == 0 {
		return broken("%s: %s, status %d; it should have been one of %q", e.text(), mode, r.status, could)
	}
	if r.sw != sw || e.class == selectsMode && mode != e.mode {
		return broken("%s: %q, and the switch points to %q", e.text(), mode, r.sw)
	}
	m.sw, m.worlds = r.sw, next
	return nil
}

// restarted is a new life: what was remembered in the old one is gone, or about another one.
func (m *model) restarted(e event, sw string) {
	m.worlds, m.sw = []world{{}}, sw
	m.taken = m.taken && e.command != ": all"
}
