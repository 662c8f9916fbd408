// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What versions of iptables print of extensions: only a library that cannot be loaded is missing.
func TestMissing(t *testing.T) {
	const (
		unloaded = "iptables v1.8.9 (nf_tables): Couldn't load match `conntrack':No such file or directory\n"
		wrong    = "libxt_conntrack.so: wrong ELF class: ELFCLASS32\n" + unloaded
		unasked  = "Warning: Extension conntrack is not supported, missing kernel module?\n" + unloaded
		unread   = "/lib/xtables/libxt_conntrack.so: Permission denied\n"
		denied   = unread + "iptables v1.8.9 (legacy): Couldn't load match `conntrack':Permission denied\n"
		kernel   = "iptables: Could not fetch rule set generation id: Permission denied\n"
		help     = "iptables v1.8.9\n\tChange policy on chain to target\n"
	)
	failed := errors.New("exit status 2")
	all := libraries(detect.IPv4)
	named := func(name string) library {
		return all[slices.IndexFunc(all, func(l library) bool { return l.name == name })]
	}
	conntrack, reject, mark, standard := named("conntrack"), named("REJECT"), named("MARK"), named("standard")
	for _, test := range []struct {
		doc            string
		library        library
		stdout, stderr string
		err            error
		want           bool
	}{
		{"a match", conntrack, help, "", nil, false},
		{"a match without a library", conntrack, "", unloaded, failed, true},
		{"a match with another architecture's library", conntrack, "", wrong, failed, true},
		{"a match, and an old version may not ask the kernel", conntrack, "", unasked, failed, false},
		{"a match, and the program was not started", conntrack, "", "", failed, false},
		{"a match whose library may not be read", conntrack, "", denied, failed, false},
		{"a match without a library, and the kernel may not be asked", conntrack, "", kernel + unloaded, failed, true},
		{"a target whose library may not be read", reject, help, unread, nil, false},
		{"a verdict", standard, help + "\nstandard match options:\n", "", nil, false},
		{"a verdict without a library", standard, help, "", nil, true},
		{"a target", reject, help + "REJECT target options:\n", "", nil, false},
		{"a target without a library", reject, help, "", nil, true},
		{"a target, and another one's help", mark, help + "REJECT target options:\n", "", nil, true},
		{"a target, and the program fails", reject, "", "Permission denied", failed, false},
	} {
		got := test.library.missing(test.stdout, test.stderr, test.err)
		if got != test.want {
			t.Errorf("%s: got %v", test.doc, got)
		}
	}
}

// The program of the backend that is wanted loads them. A variable is why, if it can do so without that.
func TestLookForLibraries(t *testing.T) {
	write := func(name, script string) string {
		path := filepath.Join(t.TempDir(), name)
		host.Check(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
		return path
	}
	const all = `test $2 != ACCEPT || set -- x standard; echo "$2 target"; echo "$2 match"`
	const lacksOwner = `case "$*" in *owner*) echo "iptables: Couldn't load match" >&2; exit 2;; esac; ` + all
	// As up to 1.8.7, where the kernel may not be asked.
	const asks = `if grep -q "^NoNewPrivs:.*1" /proc/self/status && test $1 = -m; ` +
		`then echo "iptables: Couldn't load match" >&2; exit 2; fi; test $2 = SNAT || { ` + all + `; }`
	const hidesOwner = `test -z "$XTABLES_LIBDIR" || ` + lacksOwner
	for _, test := range []struct{ doc, nft, legacy, want, variable string }{
		{"nothing", all, all, "", ""},
		{"in the other backend", lacksOwner, all, "", ""},
		{"one, and matches cannot be told", all, asks, "SNAT (ipv4) SNAT (ipv6)", ""},
		{"one", all, lacksOwner, "owner (ipv4) owner (ipv6)", ""},
		{"one that a variable hides", all, hidesOwner, "owner (ipv4) owner (ipv6)",
			"XTABLES_LIBDIR"},
	} {
		t.Setenv("XTABLES_LIBDIR", "/empty")
		r := Report{Host: detect.Result{Mode: detect.Legacy, Conclusive: true}}
		r.Programs = []Program{
			{Mode: detect.NFT, Path: write("nft", test.nft)},
			{Mode: detect.Legacy, Path: write("legacy", test.legacy)},
		}
		r.lookForLibraries(tree.Tree{})
		got := strings.Join(r.unloadable, " ")
		if got != test.want || r.hidingLibraries != test.variable {
			t.Errorf("%s: got %q, %q", test.doc, got, r.hidingLibraries)
		}
	}
}

// A program that is started powerless has no capabilities but those for reading files, and gets none; this process
// keeps its own.
func TestStartPowerless(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	const script = "#!/bin/sh\ngrep -e ^CapEff -e ^CapPrm -e ^NoNewPrivs /proc/self/status\n"
	host.Check(t, os.WriteFile(program, []byte(script), 0o755))
	var r Report
	usual, _, err := r.start(tree.Tree{}, program, "iptables")
	host.Check(t, err)
	got, _, err := r.startPowerless(tree.Tree{}, program, "iptables")
	var own [2]unix.CapUserData
	host.Check(t, unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &own[0]))
	kept := own[0].Permitted & (1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH)
	want := fmt.Sprintf("CapPrm:\t%016x\nCapEff:\t%016[1]x\nNoNewPrivs:\t1\n", kept)
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
