// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Text prints a report for people: each finding with what shows it and what to do, then the facts that matter most.
func Text(w io.Writer, r Report) {
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%-8s %s: %s\n", strings.ToUpper(string(f.Severity)), f.Code, printable(f.Text))
		for _, command := range f.Look {
			fmt.Fprintf(w, "   look: %s\n", printable(command))
		}
		fmt.Fprintf(w, "   do:   %s\n", printable(f.Do))
		fmt.Fprintf(w, "   more: %s\n\n", f.More)
	}
	if len(r.Findings) == 0 {
		fmt.Fprint(w, "no problem found\n\n")
	}
	fmt.Fprintf(w, "host:           %s\n", printable(r.Host.String()))
	fmt.Fprintf(w, "iptables here:  %s\n", printable(r.Here.String()))
	fmt.Fprintf(w, "network:        %s\n", printable(r.Network.String()))
}

// printable is a text on one line, without control characters: a name may have any byte in it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}
