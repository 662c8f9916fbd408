// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

var update = flag.Bool("update", false, "write what the tests expect into docs/evidence/compatibility.md")

// The page says what the tests expect, and they fail on any kernel that gives another result.
func TestPage(t *testing.T) {
	const file = top + "/docs/evidence/compatibility.md"
	kernels := table("kernel", "Debian", "the wrapper's build for the scripts")
	for _, k := range all {
		kernels += line(k.name, k.suite, k.build)
	}
	host.PageHolds(t, file, "kernels", kernels, *update)

	states := table("state", "nf_tables", "x_tables", "can take the rules", "detect", "a hint is found in", "doctor")
	for _, g := range groups {
		for _, s := range g.states {
			w := s.want
			doctor := ""
			if severity, names, ok := strings.Cut(w.doctor, ": "); ok {
				doctor = severity + ": names `" + names + "`"
			}
			list := func(backends string) string { return strings.ReplaceAll(backends, " ", ", ") }
			states += line(fmt.Sprintf("`%s`: %s", s.name, s.is), w.kernel[0], w.kernel[1], list(w.direct), w.detects,
				list(w.hints), doctor)
		}
	}
	host.PageHolds(t, file, "states", states, *update)
}

func table(columns ...string) string {
	return line(columns...) + "|" + strings.Repeat(" --- |", len(columns)) + "\n"
}

func line(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
