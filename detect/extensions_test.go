// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Extensions agrees with the kernel's own lists of what it has, for every extension that iptables has a library for.
func TestExtensions(t *testing.T) {
	host.Netns(t)
	libraries, err := filepath.Glob("/usr/lib/*/xtables/lib*.so")
	if err != nil || len(libraries) < 50 {
		host.Cannot(t, "find the libraries of iptables: %d, %v", len(libraries), err)
	}
	var wanted []Extension
	for _, library := range libraries {
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(library), ".so"), "_")
		wanted = append(wanted, Extension{Name: name, Target: strings.ToUpper(name) == name})
	}
	wanted = append(wanted, Extension{Name: "nonsense"}, Extension{Name: "NONSENSE", Target: true},
		Extension{Name: strings.Repeat("x", 29)}, Extension{Name: ""})
	answers := map[Answer]int{}
	for _, s := range Extensions(wanted) {
		list := "/proc/thread-self/net/ip"
		if s.Family == IPv6 {
			list += "6"
		}
		list += "_tables_matches"
		if s.Target {
			list = strings.Replace(list, "matches", "targets", 1)
		}
		names, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		want := No
		if s.Name != "" && slices.Contains(strings.Split(string(names), "\n"), s.Name) {
			want = Yes
		}
		// In legacy the list is the answer. nft_compat serves what x_tables has for the family or for all.
		if s.Has != want {
			t.Errorf("%s %s %q: got %v (%v), and the kernel lists it: %v", s.Backend, s.Family, s.Name, s.Has, s.Err, want)
		}
		answers[s.Has]++
	}
	if answers[Yes] < 100 || answers[No] < 20 {
		t.Errorf("got %v", answers)
	}
}

// Where x_tables is not loaded, what a module could bring with it is not known.
func TestExtensionsOfMissingLegacy(t *testing.T) {
	const netProc, kernel = "thread-self/net/dev=", "sys/kernel/osrelease=6.1"
	for _, test := range []struct {
		doc, modulesDisabled string
		want                 Answer
	}{
		{"modules can be loaded", "0", Unknown},
		{"modules cannot be loaded any more", "1", No},
	} {
		for _, family := range families {
			host.Netns(t)
			if family == IPv4 {
				refuseCall(t, unix.SYS_GETSOCKOPT, unix.ENOPROTOOPT) // as the kernel does
			}
			p := newLegacyProbe(family)
			p.proc = fakeProc(t, netProc, kernel, "sys/kernel/modules_disabled="+test.modulesDisabled+"\n")
			got, err := p.has(Extension{Name: "comment"})
			if got != test.want || (test.want == Unknown) != errors.Is(err, unix.ENOPROTOOPT) {
				t.Errorf("%s, %s: got %v, %v, want %v", test.doc, family, got, err, test.want)
			}
			p.close()
		}
	}
}
