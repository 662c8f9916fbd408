// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func ExampleHost() {
	r, err := detect.Host("")
	if err != nil {
		fmt.Println("not all could be asked:", err)
	}
	if !r.Certain {
		fmt.Println("a guess:", r)
		return
	}
	fmt.Println(r)
}

// A program that has made rules by a guess stays with their backend, until a marker proves the other one.
func ExampleHost_held() {
	const held = detect.NFT // of an earlier answer, which was a guess
	r, err := detect.Host(held)
	if err != nil {
		fmt.Println("not all could be asked:", err)
	}
	if r.Backend != held {
		fmt.Println("the rules must move to", r)
		return
	}
	fmt.Println("stay with", r)
}

func TestExamples(t *testing.T) {
	printed := func(example func(), want string) {
		t.Helper()
		got := host.Printed(t, example)
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	host.Netns(t)
	printed(ExampleHost, "a guess: nft: no chain or table of a known program was found, and no rule\n")
	printed(ExampleHost_held, "stay with nft: nft is in use here already, and no chain or table proves another backend\n")
	host.Run(t, "ip6tables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	const legacy = "legacy: chain KUBE-IPTABLES-HINT of kubelet is in legacy's mangle table (IPv6)\n"
	printed(ExampleHost, legacy)
	printed(ExampleHost_held, "the rules must move to "+legacy)
	host.DropCapability(t, unix.CAP_NET_ADMIN)
	const refused = "not all could be asked: ask for nf_tables: operation not permitted\n" +
		"read table \"mangle\": operation not permitted\n"
	got := host.Printed(t, ExampleHost)
	if !strings.HasPrefix(got, refused+"a guess: nft: no chain or table of a known program was found, and no rule; ") {
		t.Errorf("got %q", got)
	}
}
