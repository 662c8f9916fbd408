// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/extensions"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What versions of iptables print of extensions: only a library that cannot be loaded is missing.
func TestLacksLibrary(t *testing.T) {
	const (
		unloaded = "iptables v1.8.9 (nf_tables): Couldn't load match `conntrack':No such file or directory\n"
		wrong    = "libxt_conntrack.so: wrong ELF class: ELFCLASS32\n" + unloaded
		unasked  = "Warning: Extension conntrack is not supported, missing kernel module?\n" + unloaded
		help     = "iptables v1.8.9\n\tChange policy on chain to target\n"
	)
	failed := errors.New("exit status 2")
	conntrack := extensions.Extension{Name: "conntrack"}
	reject := extensions.Extension{Name: "REJECT", Target: true}
	mark := extensions.Extension{Name: "MARK", Target: true}
	for _, test := range []struct {
		doc            string
		extension      extensions.Extension
		stdout, stderr string
		err            error
		want           bool
	}{
		{"a match", conntrack, help, "", nil, false},
		{"a match without a library", conntrack, "", unloaded, failed, true},
		{"a match with another architecture's library", conntrack, "", wrong, failed, true},
		{"a match, and an old version may not ask the kernel", conntrack, "", unasked, failed, false},
		{"a match, and the program was not started", conntrack, "", "", failed, false},
		{"a target", reject, help + "REJECT target options:\n", "", nil, false},
		{"a target without a library", reject, help, "", nil, true},
		{"a target, and another one's help", mark, help + "REJECT target options:\n", "", nil, true},
		{"a target, and the program fails", reject, "", "Permission denied", failed, false},
	} {
		got := lacksLibrary(test.extension, test.stdout, test.stderr, test.err)
		if got != test.want {
			t.Errorf("%s: got %v", test.doc, got)
		}
	}
}

// A program that is started powerless has no capabilities and gets none; this process keeps its own.
func TestStartPowerless(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	const script = "#!/bin/sh\ngrep -e ^CapEff -e ^CapPrm -e ^NoNewPrivs /proc/self/status\n"
	host.Check(t, os.WriteFile(program, []byte(script), 0o755))
	var r Report
	usual, _, err := r.start(tree.Tree{}, program, "iptables")
	host.Check(t, err)
	got, _, err := r.startPowerless(tree.Tree{}, program, "iptables")
	want := "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	for range 20 { // on threads that may have been used before
		again, _, err := r.start(tree.Tree{}, program, "iptables")
		if err != nil || again != usual {
			t.Fatalf("others are powerless, too: %q, %v", again, err)
		}
	}
}
