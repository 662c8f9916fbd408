// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// found puts a marker among those that were found, and gives the answer that goes with it.
func found(b Backend, k Reason, n Marker) about {
	return func(e *Evidence) {
		findings := e.of(b)
		findings.answers(k)[n.Family] = Yes
		findings.Markers = append(findings.Markers, n)
	}
}

func failed(b Backend, err error) about { return func(e *Evidence) { e.of(b).Err = err } }

func counted(b Backend, a Answer) about { return func(e *Evidence) { e.of(b).Counted = a } }

func lacks(what string) about {
	return func(e *Evidence) {
		e.TakesRules = No
		e.Lacks = what
	}
}

// Because is one line, and names what decides and what is in the way of certainty.
func TestBecause(t *testing.T) {
	hint4 := Marker{Program: "kubelet", Family: IPv4, Table: "mangle", Chain: hintChain}
	hint6 := Marker{Program: "kubelet", Family: IPv6, Table: "mangle", Chain: hintChain}
	canary4 := Marker{Program: "kubelet", Family: IPv4, Table: "mangle", Chain: canaryChain}
	docker := Marker{Program: "Docker", Family: IPv4, Table: "filter", Chain: "DOCKER-USER"}
	proxy := Marker{Program: "kube-proxy", Family: IPv4, Table: "ip kube-proxy"}
	refused := errors.Join(errors.New("a table: not permitted"), errors.New("another"))
	for _, test := range []struct {
		about []about
		held  Backend
		want  string
	}{
		{want: "no chain or table of a known program was found, and no rule"},
		{
			about: []about{found(Legacy, KubeletHint, hint4)},
			want:  "chain KUBE-IPTABLES-HINT of kubelet is in legacy's mangle table (IPv4)",
		},
		{
			about: []about{found(NFT, KubeletCanary, canary4)},
			want:  "chain KUBE-KUBELET-CANARY of kubelet is in nft's mangle table (IPv4)",
		},
		{
			about: []about{found(NFT, KubeletHint, hint4), found(Legacy, KubeletHint, hint6)},
			want: "chain KUBE-IPTABLES-HINT of kubelet is in nft's mangle table (IPv4), " +
				"but chain KUBE-IPTABLES-HINT of kubelet is in legacy's mangle table (IPv6)",
		},
		{
			about: []about{found(NFT, HostProgram, proxy)},
			want:  "table ip kube-proxy of kube-proxy is in nf_tables",
		},
		{
			about: []about{found(NFT, HostProgram, proxy), found(Legacy, HostProgram, docker)},
			want: "table ip kube-proxy of kube-proxy is in nf_tables, " +
				"but chain DOCKER-USER of Docker is in legacy's filter table (IPv4)",
		},
		{
			about: []about{
				found(NFT, HostProgram, docker), marker(KubeletHint, Legacy, IPv4, Unknown), failed(Legacy, refused),
			},
			want: "chain DOCKER-USER of Docker is in nft's filter table (IPv4); " +
				"legacy could not be read (a table: not permitted; another)",
		},
		{
			about: []about{found(NFT, HostProgram, docker), marker(HostProgram, Legacy, IPv4, Unknown)},
			want:  "chain DOCKER-USER of Docker is in nft's filter table (IPv4); legacy is too large to be read",
		},
		{
			about: []about{found(NFT, HostProgram, docker)}, held: Legacy,
			want: "chain DOCKER-USER of Docker is in nft's filter table (IPv4)",
		},
		{about: []about{kernel(NFT, No)}, want: "this kernel has no nf_tables"},
		{about: []about{lacks("nat chains")}, want: "this kernel's nf_tables lacks nat chains"},
		{
			about: []about{number(NFT, 1), number(Legacy, 12)},
			want:  "no chain or table of a known program was found; rules: nft 1, legacy 12",
		},
		{
			about: []about{number(NFT, 7), counted(NFT, No), number(Legacy, 6)},
			want:  "no chain or table of a known program was found; rules: nft at least 7, legacy 6",
		},
		{
			about: []about{number(NFT, 1), counted(NFT, No), number(Legacy, 6)},
			want:  "no chain or table of a known program was found; rules: nft at least 1, legacy 6",
		},
		{
			about: []about{kernel(Legacy, No), func(e *Evidence) { e.Loadable = No }, failed(NFT, errors.New("one"))},
			want: "no chain or table of a known program was found; x_tables is not loaded, and cannot be loaded " +
				"here; nft could not be read (one)",
		},
		{
			about: []about{counted(NFT, Unknown), failed(NFT, errors.New("one")), number(Legacy, 1)},
			want: "no chain or table of a known program was found; rules: nft 0 of those that were read, legacy 1; " +
				"nft could not be read (one)",
		},
		{
			about: []about{failed(NFT, errors.New("one")), failed(Legacy, errors.New("two"))},
			want: "no chain or table of a known program was found, and no rule; " +
				"nft could not be read (one); legacy could not be read (two)",
		},
		{held: NFT, want: "nft is in use here already, and no chain or table proves another backend"},
		{
			about: []about{number(Legacy, 9), failed(Legacy, errors.New("two"))}, held: NFT,
			want: "nft is in use here already, and no chain or table proves another backend; " +
				"legacy could not be read (two)",
		},
		{
			about: []about{found(NFT, KubeletHint, hint4), found(Legacy, KubeletHint, hint4)}, held: Legacy,
			want: "legacy is in use here already, and no chain or table proves another backend: " +
				"chain KUBE-IPTABLES-HINT of kubelet is in nft's mangle table (IPv4), " +
				"but chain KUBE-IPTABLES-HINT of kubelet is in legacy's mangle table (IPv4)",
		},
	} {
		r := Decide(nothing().with(test.about), test.held)
		if r.Because() != test.want {
			t.Errorf("got  %q\nwant %q", r.Because(), test.want)
		}
		if strings.ContainsFunc(r.Because(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q cannot be printed on one line", r.Because())
		}
	}
}
