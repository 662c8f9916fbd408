// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// reportFaults checks that each errno that is listed for a call was tried somewhere, and writes the results into
// docs/evidence/faults.md, if that is asked for.
func reportFaults(t *testing.T, results string) {
	total := 0
	tried := map[string]bool{}
	calls := map[string]map[outcome]int{}
	contents := readResults(t, results)
	for _, content := range contents {
		var all []fault
		if err := json.Unmarshal(content, &all); err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			total++
			tried[f.Step.Name+" "+f.Errno] = true
			key := "`" + strings.TrimSpace(f.Step.Name+"` "+f.Step.On)
			if calls[key] == nil {
				calls[key] = map[outcome]int{}
			}
			calls[key][f.Outcome]++
		}
	}
	for name, allowed := range errnos {
		for errno := range strings.FieldsSeq(everyErrno + " " + allowed) {
			if host.All() && len(contents) == len(scenes) && !tried[name+" "+errno] {
				t.Errorf("no %s failed with %s in any scene", name, errno)
			}
		}
	}
	outcomes := []outcome{kept, ran, swayed, refused}
	var text strings.Builder
	fmt.Fprintf(&text, "Each system call of a first call, `select` and `reset` fails, one by one, in these situations: in the marked ones with each\nerrno below, in the others with %d of them, different ones in each. linkat and unlinkat, which are rare, always fail with each.\n\n", fewErrnos)
	for _, s := range scenes {
		mark := ""
		if s.every {
			mark = " (each errno)"
		}
		fmt.Fprintf(&text, "- %s%s\n", s.doc, mark)
	}
	text.WriteString("\n| call |")
	for _, o := range outcomes {
		fmt.Fprintf(&text, " %s |", o)
	}
	text.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(outcomes)) + "\n")
	for _, key := range slices.Sorted(maps.Keys(calls)) {
		fmt.Fprintf(&text, "| %s |", key)
		for _, o := range outcomes {
			count := ""
			if n := calls[key][o]; n > 0 {
				count = strconv.Itoa(n)
			}
			fmt.Fprintf(&text, " %s |", count)
		}
		text.WriteString("\n")
	}
	text.WriteString("\n| call | errnos |\n| --- | --- |\n")
	fmt.Fprintf(&text, "| each | %s |\n", everyErrno)
	for _, name := range slices.Sorted(maps.Keys(errnos)) {
		fmt.Fprintf(&text, "| %s | %s |\n", name, errnos[name])
	}
	section(t, "faults", total, "faults injected", text.String())
}
