// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/page"
)

var update = flag.Bool("update", false, "write what the tests expect into docs/evidence/kernels.md")

// The page says what the tests expect, and they fail on any kernel that gives another result.
func TestPage(t *testing.T) {
	const file = top + "/docs/evidence/kernels.md"
	kernels := table("kernel", "Debian", "the wrapper's build for the scripts")
	for _, k := range all {
		kernels += line(k.name, k.suite, k.build)
	}
	page.Holds(t, file, "kernels", kernels, *update)

	states := table("state", "nf_tables, IPv4 and IPv6", "legacy", "can take the rules", "detect", "the first restore", "a hint is found in", "doctor")
	for _, g := range groups {
		for _, s := range g.states {
			w := s.want
			restore := w.adds
			if w.direct == "" {
				restore += ", fails"
			}
			doctor := ""
			if severity, names, ok := strings.Cut(w.doctor, ": "); ok {
				doctor = severity + ": names `" + names + "`"
			}
			list := func(backends string) string { return strings.ReplaceAll(backends, " ", ", ") }
			states += line(fmt.Sprintf("`%s`: %s", s.name, s.is), w.supported[0]+", "+w.supported[1], w.supported[2]+", "+w.supported[3],
				list(w.direct), w.detects, restore, list(w.hints), doctor)
		}
	}
	page.Holds(t, file, "states", states, *update)
}

func table(columns ...string) string {
	return line(columns...) + "|" + strings.Repeat(" --- |", len(columns)) + "\n"
}

func line(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
