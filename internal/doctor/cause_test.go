// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// A variable is blamed for a program that fails with it, and works without it.
func TestFindCause(t *testing.T) {
	for _, test := range []struct {
		doc, script, blamed string
	}{
		{"it works", "exit 0", ""},
		{"it never works", "exit 1", ""},
		{"it works without the variable", `test -z "$XTABLES_LIBDIR"`, "XTABLES_LIBDIR"},
		{"it works with the variable alone", `test -n "$XTABLES_LIBDIR"`, ""},
	} {
		t.Setenv("XTABLES_LIBDIR", "/usr/lib/xtables")
		program := filepath.Join(t.TempDir(), "program")
		err := os.WriteFile(program, []byte("#!/bin/sh\n"+test.script+"\n"), 0o755)
		if err != nil {
			t.Fatal(err)
		}
		var r Report
		r.findCause(tree.Tree{}, program)
		if r.libraries != test.blamed || r.noexec != "" {
			t.Errorf("%s: got %q, noexec %q", test.doc, r.libraries, r.noexec)
		}
	}
}
