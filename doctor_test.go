// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// healthy is a container on a legacy host where nothing is wrong.
func healthy() examination {
	x := examination{
		result: detect.Result{
			Mode: detect.Legacy, Reason: detect.KubeletHint, Conclusive: true,
			Evidence: []detect.Evidence{
				{Backend: detect.NFT, Family: detect.IPv4, Supported: detect.Yes},
				{Backend: detect.NFT, Family: detect.IPv6, Supported: detect.Yes},
				{Backend: detect.Legacy, Family: detect.IPv4, Supported: detect.Yes, Hint: detect.Yes},
				{Backend: detect.Legacy, Family: detect.IPv6, Supported: detect.Yes},
			},
		},
		programs: []program{
			{Mode: detect.NFT, Path: "/p", Version: "iptables v1.8.9 (nf_tables)"},
			{Mode: detect.Legacy, Path: "/q", Version: "iptables v1.8.9 (legacy)"},
		},
		own:   true,
		leads: []exec.Lead{{Name: "iptables", End: "/w", Wrapper: true}, {Name: "ip6tables", End: "/q", Mode: "legacy"}},
	}
	for _, r := range rights {
		r.Has = true
		x.rights = append(x.rights, r)
	}
	return x
}

// Each thing that can be wrong is found, by its weight; the gravest comes first.
func TestFindings(t *testing.T) {
	rules := func(backend int, n int, chains ...string) func(*examination) {
		return func(x *examination) {
			x.result.Evidence[backend].Tables = []detect.Table{{Name: "nat", Rules: detect.Count{Min: n, Max: n}, Chains: chains}}
		}
	}
	for _, test := range []struct {
		doc  string
		make func(*examination)
		want string // weights, and a part of the first finding or its advice
	}{
		{"healthy", func(*examination) {}, ""},
		{"inconclusive", func(x *examination) { x.result.Conclusive = false }, "warning: not certain"},
		{"the right override", func(x *examination) { x.override = detect.Legacy }, ""},
		{"the wrong override", func(x *examination) { x.override = detect.NFT }, "problem: asks for nft, and the host uses legacy"},
		{"an override where nothing is certain", func(x *examination) { x.override, x.result.Conclusive = detect.Legacy, false }, ""},
		{"another user namespace", func(x *examination) { x.result.Evidence[1].Err = unix.EPERM }, "problem: does not hold for this network namespace"},
		{"no NET_ADMIN", func(x *examination) { x.rights[0].Has = false }, "problem: CAP_NET_ADMIN is missing"},
		{"no NET_RAW on a legacy host", func(x *examination) { x.rights[1].Has = false }, "problem: CAP_NET_RAW is missing"},
		{"no NET_RAW on an nft host", func(x *examination) {
			x.rights[1].Has, x.result.Mode, x.leads = false, detect.NFT, x.leads[:1]
		}, "warning: CAP_NET_RAW is missing"},
		{"the host's program is missing", func(x *examination) { x.programs[1] = program{Mode: detect.Legacy, Error: "gone"} }, "problem: gone"},
		{"the other program is missing", func(x *examination) { x.programs[0] = program{Mode: detect.NFT, Error: "gone"} }, "warning: gone"},
		{"two versions", func(x *examination) { x.programs[0].Version = "iptables v1.8.11 (nf_tables)" }, "warning: nft 1.8.11, legacy 1.8.9"},
		{"not in the kernel", func(x *examination) { x.result.Evidence[2].Supported = detect.No }, "problem: this kernel has no legacy"},
		{"a name leads nowhere", func(x *examination) { x.leads[0] = exec.Lead{Name: "iptables", Err: errors.New("gone")} }, "warning: iptables leads nowhere: gone"},
		{"a name leads elsewhere", func(x *examination) { x.leads[0] = exec.Lead{Name: "iptables", End: "/bin/true"} }, `warning: leads to "/bin/true"`},
		{"two modes", func(x *examination) { x.leads[0].Wrapper, x.leads[0].Mode = false, "nft" }, "problem: some names lead to nft"},
		{"the other mode", func(x *examination) { x.leads[1].Mode = "nft" }, "problem: the names lead to nft, and the host uses legacy"},
		{"the other mode, in a pod's namespace", func(x *examination) { x.leads[1].Mode, x.own = "nft", false }, ""},
		{"no name", func(x *examination) {
			for i := range x.leads {
				x.leads[i].Err = errors.New("gone")
			}
		}, "problem: none of the six names is there: gone"},
		{"the other mode, by a guess", func(x *examination) { x.leads[1].Mode, x.result.Conclusive = "nft", false }, "warning: not certain"},
		{"read-only", func(x *examination) { x.leads[0].Fixed = unix.EROFS }, "note: read-only file system"},
		{"no lock", func(x *examination) { x.lock = unix.EACCES }, "problem: cannot lock"},
		{"an extension is missing", func(x *examination) {
			x.support = []detect.Support{
				{Backend: detect.Legacy, Family: detect.IPv4, Extension: detect.Extension{Name: "set"}, Has: detect.No},
				{Backend: detect.NFT, Family: detect.IPv4, Extension: detect.Extension{Name: "CT"}, Has: detect.No},
			}
		}, "warning: no set for legacy ipv4"},
		{"no IPv6, so no extension for it", func(x *examination) {
			x.result.Evidence[3].Supported = detect.No
			x.support = []detect.Support{{Backend: detect.Legacy, Family: detect.IPv6, Extension: detect.Extension{Name: "set"}, Has: detect.No}}
		}, ""},
		{"an unreadable table", func(x *examination) { x.unreadable = []string{"Table `filter'"} }, "problem: cannot read all of its tables: Table `filter'"},
		{"control characters", func(x *examination) { x.unreadable = []string{"a\x1b[1m\nproblem: b"} }, "problem: a [1m problem: b"},
		{"a conflict", func(x *examination) { x.result.Conflicts = []detect.Conflict{detect.StrayCanary} }, "warning: left from another mode"},
		{"stray rules", rules(1, 3, "DOCKER-USER", "KUBE-SERVICES", "mine"), "warning: 3 in nft ipv6 nat, with chains of Docker, Kubernetes"},
		{"rules where they belong", rules(2, 3, "KUBE-SERVICES"), ""},
		{"several", func(x *examination) {
			x.leads[0].Fixed, x.unreadable, x.result.Conflicts = unix.EROFS, []string{"nat"}, []detect.Conflict{detect.HintInBoth}
		}, "problem warning note: cannot read all of its tables: nat"},
	} {
		x := healthy()
		test.make(&x)
		var weights []string
		text := ""
		for _, f := range x.findings() {
			weights = append(weights, string(f.Weight))
			if text == "" {
				text = f.Finding + " -> " + f.Advice
			}
			if f.Advice == "" {
				t.Errorf("%s: no advice for %q", test.doc, f.Finding)
			}
		}
		want, part, _ := strings.Cut(test.want, ": ")
		if got := strings.Join(weights, " "); got != want || !strings.Contains(text, part) {
			t.Errorf("%s: got %s: %s, want %s", test.doc, got, text, test.want)
		}
	}
}
