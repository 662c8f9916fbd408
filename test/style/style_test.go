// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// What is found, and what is not.
func TestCheck(t *testing.T) {
	const outside = "changes something that is declared outside, before it asks: make that a statement of its own"
	long := "// " + strings.Repeat("x", 117)
	for _, test := range []struct {
		name, source string
		want         []string
	}{
		{
			name:   "120 columns",
			source: long,
		},
		{
			name:   "121 columns",
			source: long + "x",
			want:   []string{"f.go:2: 121 columns; at most 120"},
		},
		{
			name:   "a tab is four columns",
			source: "func f() {\n\t//" + strings.Repeat("x", 115) + "\n}",
			want:   []string{"f.go:3: 121 columns; at most 120"},
		},
		{
			name:   "characters, not bytes",
			source: "// " + strings.Repeat("ü", 117),
		},
		{
			name:   "a table",
			source: "//style:table\nvar x = []string{\n\t// " + long + "\n}\n\n" + long + "x",
			want:   []string{"f.go:7: 121 columns; at most 120"},
		},
		{
			name: "a table in a function, with brackets in its rows",
			source: "func f() {\n\t//style:table\n\tx := g([]string{\n\t\t(y),\n\t\t// " + long + "\n\t})\n" +
				"\t// " + long + "\n}",
			want: []string{"f.go:8: 127 columns; at most 120"},
		},
		{
			name:   "300 lines",
			source: strings.Repeat("\n", 298),
		},
		{
			name:   "301 lines",
			source: strings.Repeat("\n", 299),
			want:   []string{"f.go:301: 301 lines; at most 300"},
		},
		{
			name:   "new variables",
			source: "func f() {\n\tif x := g(); x {\n\t}\n\tswitch y := g(); y {\n\t}\n}",
		},
		{
			name:   "an outer variable in an if",
			source: "func f() {\n\tif x = g(); x {\n\t}\n}",
			want:   []string{"f.go:3: " + outside},
		},
		{
			name:   "a call in a switch",
			source: "func f() {\n\tswitch g(); x {\n\t}\n}",
			want:   []string{"f.go:3: " + outside},
		},
		{
			name:   "an else",
			source: "func f() {\n\tif x {\n\t} else if x++; x {\n\t}\n}",
			want:   []string{"f.go:4: " + outside},
		},
		{
			name:   "a loop over outer variables",
			source: "func f() {\n\tfor x = 0; x < 1; x++ {\n\t}\n}",
		},
		{
			name:   "a channel in a condition",
			source: "func f() {\n\tfor x && <-c {\n\t}\n}",
			want:   []string{"f.go:3: changes something in its condition: make that a statement of its own"},
		},
		{
			name:   "no Go",
			source: "}",
			want:   []string{"f.go:2:1: expected declaration, found '}'"},
		},
	} {
		got := check("f.go", "package p\n"+test.source+"\n")
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
