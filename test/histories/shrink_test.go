// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shrink returns a shorter history in a plainer setting that breaks a promise, too. What depends on an instant is tried again.
func shrink(t *testing.T, image string, s settings, events []event, v *violation) (settings, []event, *violation) {
	fails := func(s settings, events []event) *violation {
		for range 2 {
			if v := play(t, image, s, events, nil); v != nil {
				return v
			}
		}
		return nil
	}
	events = events[:v.at+1]
	for size := (len(events) + 1) / 2; size > 0; {
		removed := false
		for at := 0; at < len(events)-1; {
			fewer := slices.Delete(slices.Clone(events), at, min(at+size, len(events)-1))
			if found := fails(s, fewer); found != nil {
				events, v, removed = fewer[:found.at+1], found, true
				continue
			}
			at += size
		}
		if !removed || size > 1 {
			size /= 2
		}
	}
	for _, plainer := range []func(*settings){
		func(s *settings) { s.Shm = "sticky" }, func(s *settings) { s.Run = "rw" }, func(s *settings) { s.Dev = "own" },
		func(s *settings) { s.Group = 0 }, func(s *settings) { s.Init = 0 }, func(s *settings) { s.Root = "rw" },
	} {
		other := s
		if plainer(&other); other == s {
			continue
		}
		if found := fails(other, events); found != nil {
			s, v, events = other, found, events[:found.at+1]
		}
	}
	for i := range events {
		simpler := slices.Clone(events)
		simpler[i].v6 = false
		if found := fails(s, simpler); found != nil {
			events, v = simpler[:found.at+1], found
		}
		if i >= len(events)-1 {
			break
		}
	}
	return s, events, v
}

// script is a history as a script for test/script, which fails as the history does.
func script(seed uint64, s settings, events []event, v *violation) string {
	var head, lives strings.Builder
	fmt.Fprintf(&head, "# A random history (TEST_SEED=%d): %s\nmkdir h\n", seed, strings.TrimSpace(strings.ReplaceAll(v.text, "\n", "\n# ")))
	for _, variable := range append(s.environment(), "H=$WORK/h", "IMAGE=$WORK/image", "IPTABLES_WRAPPER=/usr/sbin/iptables-wrapper") {
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
	for i, e := range events {
		switch {
		case e.class == restarts:
			life(strings.TrimPrefix(e.command, ": "))
		case i == v.at:
			fmt.Fprintf(&lives, "for mode in nft legacy; do saved $mode | sed '/^#/d' >$H/$mode; done\n{ %s\n} >\"$H/out\" 2>\"$H/err\" </dev/null && ran=0 || ran=$?\n%s\n", e.text(), v.check)
		default:
			fmt.Fprintf(&lives, "%s </dev/null\n", e.text())
		}
	}
	for name, content := range map[string]string{"image.sh": imageScript, "container.sh": containerScript, "prelude.sh": preludeScript} {
		fmt.Fprintf(&lives, "-- %s --\n%s", name, content)
	}
	return head.String() + lives.String()
}
