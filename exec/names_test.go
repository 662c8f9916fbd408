// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestName(t *testing.T) {
	for _, test := range []struct {
		argv0, name string
		ok          bool
	}{
		{"iptables", "iptables", true},
		{"/usr/sbin/ip6tables-restore", "ip6tables-restore", true},
		{"./iptables-save", "iptables-save", true},
		{"iptables-wrapper", "iptables-wrapper", false},
		{"iptables-nft", "iptables-nft", false},
		{"xtables-nft-multi", "xtables-nft-multi", false},
		{"iptables/", "", false},
		{"-iptables", "-iptables", false},
		{"IPTABLES", "IPTABLES", false},
		{"", "", false},
	} {
		if name, ok := Name(test.argv0); name != test.name || ok != test.ok {
			t.Errorf("%q: got %q, %v, want %q, %v", test.argv0, name, ok, test.name, test.ok)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, test := range []struct{ path, dir, base, joined string }{
		{"/usr/sbin/iptables", "/usr/sbin", "iptables", "/usr/sbin/iptables"},
		{"iptables", ".", "iptables", "./iptables"},
		{"/iptables", "/", "iptables", "/iptables"},
		{"link/../iptables", "link/..", "iptables", "link/../iptables"},
		{"sbin//iptables", "sbin/", "iptables", "sbin/iptables"},
	} {
		if dir(test.path) != test.dir || base(test.path) != test.base || in(test.dir, test.base) != test.joined {
			t.Errorf("%q: got %q, %q, %q", test.path, dir(test.path), base(test.path), in(test.dir, test.base))
		}
	}
}

func TestCandidates(t *testing.T) {
	for _, name := range names {
		for _, mode := range []string{"nft", "legacy"} {
			family, verb, _ := strings.Cut(name, "tables")
			want := fmt.Sprintf("[xtables-%s-multi %stables-%s%s]", mode, family, mode, verb)
			if got := fmt.Sprint(candidates(mode, name)); got != want {
				t.Errorf("%s %s: got %s, want %s", name, mode, got, want)
			}
			for _, c := range candidates(mode, name) {
				if !isBackend(c) {
					t.Errorf("%s is not known as a program of iptables", c)
				}
			}
		}
		if isBackend(name) {
			t.Errorf("%s is taken for a program", name)
		}
	}
	if isBackend(wrapperName) || isBackend("arptables-nft") || isBackend("xtables-monitor") {
		t.Error("another program is taken for one of iptables")
	}
}

func TestCheckVersion(t *testing.T) {
	for _, test := range []struct {
		output    string
		ok        bool
		unchecked bool
	}{
		{"iptables v1.8.4 (nf_tables)\n", true, false},
		{"iptables v1.8.11 (nf_tables)\n", true, false},
		{"iptables v2.0.0 (nf_tables)\n", true, false},
		{"iptables v1.10.0 (nf_tables)\n", true, false},
		{"iptables v1.8.3 (nf_tables)\n", false, false},
		{"iptables v1.6.9 (nf_tables)\n", false, false},
		{"iptables v0.9.9 (nf_tables)\n", false, false},
		{"iptables v1.8.9 (legacy)\n", false, false},
		{"iptables v1.6.1\n", false, true},
		{"", false, true},
		{"hello\n", false, true},
	} {
		err := checkVersion("p", "nft", test.output)
		if (err == nil) != test.ok || errors.Is(err, ErrUnchecked) != test.unchecked {
			t.Errorf("%q: got %v", test.output, err)
		}
	}
}

func TestStatus(t *testing.T) {
	for err, want := range map[error]int{
		fmt.Errorf("x: %w", ErrMissing): 127,
		ErrRecursion:                    126,
		unix.EACCES:                     126,
		unix.ENOENT:                     126, // the program is there; its interpreter is not
		unix.ENOEXEC:                    126,
	} {
		if got := Status(err); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}
