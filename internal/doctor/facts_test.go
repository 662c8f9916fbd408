// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Kernels that cannot be had here.
func TestKernel(t *testing.T) {
	for _, test := range []struct {
		doc         string
		here        evidence.Mode
		nft, legacy evidence.About
		nat         string // what nft lacks for it
		want        string // a part of the text, "" for no finding
	}{
		{
			doc:  "RHEL 10 without kernel-modules-extra",
			here: evidence.NFT,
			nft: evidence.About{Works: evidence.No, Lacks: "matches and targets of iptables " +
				"(nft_compat)"}, legacy: evidence.About{Works: evidence.No},
			want: "can do neither nft nor legacy (it lacks matches and targets of iptables (nft_compat))",
		},
		{
			doc:    "no nf_tables, and nothing of legacy",
			here:   evidence.Legacy,
			nft:    evidence.About{Works: evidence.No},
			legacy: evidence.About{Works: evidence.Unknown, Lacks: "ip_tables"},
			want:   "can do neither nft nor legacy",
		},
		{
			doc:    "no nf_tables, and a module of legacy",
			here:   evidence.Legacy,
			nft:    evidence.About{Works: evidence.No},
			legacy: evidence.About{Works: evidence.Unknown},
		},
		{
			doc:    "no nat chains",
			here:   evidence.NFT,
			nft:    evidence.About{Works: evidence.Yes},
			legacy: evidence.About{Works: evidence.Yes},
			nat:    "nat chains (nft_chain_nat)",
			want:   "the kernel lacks nat chains (nft_chain_nat)",
		},
		{
			doc:    "no nat chains, and legacy is what runs",
			here:   evidence.Legacy,
			nft:    evidence.About{Works: evidence.Yes},
			legacy: evidence.About{Works: evidence.Yes},
			nat:    "nat chains (nft_chain_nat)",
		},
		{
			doc:    "no x_tables",
			here:   evidence.Legacy,
			nft:    evidence.About{Works: evidence.Yes},
			legacy: evidence.About{Works: evidence.No}, want: "should run legacy",
		},
		{
			doc:    "a kernel without legacy is normal",
			here:   evidence.NFT,
			nft:    evidence.About{Works: evidence.Yes},
			legacy: evidence.About{Works: evidence.No},
		},
	} {
		f := facts{process: process{netAdmin: true, netRaw: true}}
		f.Here.Backend = test.here
		f.nat[evidence.IPv4].Lacks = test.nat
		f.Host.Result = evidence.Result{
			Decision: evidence.Decision{Mode: evidence.NFT},
			NFT:      evidence.Backend{test.nft, test.nft},
			Legacy:   evidence.Backend{test.legacy, test.legacy},
		}
		found := f.kernel()
		if found == nil != (test.want == "") || found != nil && !strings.Contains(found.Text, test.want) {
			t.Errorf("%s: got %+v", test.doc, found)
		}
	}
}

// A comment may look like a target. What no base chain leads to is not reached.
func TestParse(t *testing.T) {
	table := parse(`*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING DROP [0:0]
:A - [0:0]
:B - [0:0]
:UNUSED - [0:0]
-A PREROUTING -m comment --comment "a \\"b\\" -j UNUSED" -g A
-A A -j B
-A A -p tcp
-A UNUSED -j DNAT --to-destination 10.0.0.1
COMMIT
`)
	reached := table.reached()
	if !reached["B"] || reached["UNUSED"] || table.policies["POSTROUTING"] != "DROP" ||
		!slices.Equal(table.rules["A"], []string{"B", ""}) {
		t.Errorf("got %+v, reached %v", table, reached)
	}
}

func TestList(t *testing.T) {
	names := slices.Repeat([]string{"x"}, 3001)
	for n, want := range map[int]string{
		0:    "",
		2:    "x, x",
		8:    "x, x, x, x, x, x, x, x",
		9:    "x, x, x, x, x, x, x, x and 1 more",
		3001: "x, x, x, x, x, x, x, x and 2,993 more",
	} {
		if got := List(names[:n]); got != want {
			t.Errorf("%d: got %q", n, got)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	for chain, want := range map[string]string{
		"KUBE-SVC-ABC": kubeProxy, "KUBE-FIREWALL": "kubelet", "KUBE-ROUTER-INPUT": "kube-router",
		"cali-INPUT": "Calico", "f2b-sshd": "fail2ban", "DOCKER-USER": "Docker", "ts-input": "Tailscale",
		"ufw6-user-input": "ufw", "ACCEPT": "", "INPUT": "", "POSTROUTING": "", "PREROUTING": "",
	} {
		if got := ownerOf(chain); got != want {
			t.Errorf("%s: got %q", chain, got)
		}
	}
}
