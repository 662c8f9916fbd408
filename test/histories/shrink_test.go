// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shrunk returns a shorter history in a plainer setting that breaks a promise, too. What depends on an instant is tried again.
func (h *history) shrunk(t *testing.T, image string, v *violation) *history {
	short := *h
	short.events, short.broken = h.events[:v.at+1], v
	try := func(other history) bool {
		for range 2 {
			if v := other.play(t, image); v != nil {
				other.events, other.broken = other.events[:v.at+1], v
				short = other
				return true
			}
		}
		return false
	}
	for size := (len(short.events) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(short.events)-1; {
			other := short
			other.events = slices.Delete(slices.Clone(short.events), at, min(at+size, len(short.events)-1))
			if !try(other) {
				at += size
			}
		}
	}
	for _, plainer := range []func(*settings){
		func(s *settings) { s.Shm = "sticky" }, func(s *settings) { s.Run = "rw" }, func(s *settings) { s.Dev = "own" },
		func(s *settings) { s.Group = 0 }, func(s *settings) { s.Init = 0 }, func(s *settings) { s.Root = "rw" },
	} {
		other := short
		if plainer(&other.settings); other.settings != short.settings {
			try(other)
		}
	}
	return &short
}

// script is a history as a script for test/script, which fails as the history does.
func (h *history) script(seed uint64) string {
	v := h.broken
	var head, lives strings.Builder
	fmt.Fprintf(&head, "# A random history (TEST_SEED=%d): %s\nmkdir h\n", seed, strings.TrimSpace(strings.ReplaceAll(v.text, "\n", "\n# ")))
	for _, variable := range append(h.environment(), "H=$WORK/h", "IMAGE=$WORK/image", "IPTABLES_WRAPPER=/usr/sbin/iptables-wrapper") {
		fmt.Fprintf(&head, "env %s\n", variable)
	}
	head.WriteString("exec sh -e image.sh\n")
	number := 0
	life := func(fresh string) {
		number++
		fmt.Fprintf(&head, "env NEW=%s\nstdin life%d\nexec sh -e container.sh\n", fresh, number)
		fmt.Fprintf(&lives, "-- life%d --\n. \"$H/../prelude.sh\"\n", number)
	}
	life("none")
	for i, e := range h.events {
		switch {
		case e.class == restarts:
			life(strings.TrimPrefix(e.command, ": "))
		case i == v.at:
			fmt.Fprintf(&lives, "{ %s\n} >\"$H/out\" 2>\"$H/err\" </dev/null && ran=0 || ran=$?\nlook\n! cmp \"$H/outcome\" \"$H/../outcome\" # that was wrong\n", e.text())
		default:
			fmt.Fprintf(&lives, "%s </dev/null\n", e.text())
		}
	}
	for name, content := range map[string]string{"image.sh": imageScript, "container.sh": containerScript, "prelude.sh": preludeScript, "outcome": v.outcome} {
		fmt.Fprintf(&lives, "-- %s --\n%s", name, content)
	}
	return head.String() + lives.String()
}
