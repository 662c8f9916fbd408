// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Which backend does this host use?
func ExampleHost() {
	r := detect.Host()
	fmt.Println(r)
	if !r.Conclusive {
		fmt.Println("a guess:", r.Uncertainty())
	}
}

// All evidence, also what cannot change the answer.
func ExampleQuery_Run() {
	r := detect.Query{Everything: true}.Run()
	for _, e := range r.Evidence {
		fmt.Printf("%s %s: hint %s, %s", e.Backend, e.Family, e.Hint, e.Rules)
		if e.Err != nil {
			fmt.Printf(", %v", e.Err)
		}
		fmt.Println()
	}
	for _, c := range r.Conflicts {
		fmt.Println("conflict:", c)
	}
}

// At boot, before the host has shown what it uses: wait for kubelet's chains, or for rules.
func ExampleQuery_Wait() {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	r, err := detect.Query{}.Wait(ctx)
	if err != nil {
		fmt.Println("nothing came:", err)
		return
	}
	fmt.Println(r.Mode, r.Reason)
}

// The examples do what they say, on a host that is empty and on one that is not.
func TestExamples(t *testing.T) {
	host.Netns(t)
	check := func(example func(), want string) {
		t.Helper()
		if got := host.Printed(t, example); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
	check(ExampleHost, "nft: no evidence was found, and nft is the default\n"+
		"a guess: found neither a kubelet chain nor any rule in this network namespace, so the host's backend is "+
		"unknown\n")
	check(ExampleQuery_Wait, "nothing came: context deadline exceeded\n")
	host.Run(t, "ip6tables-legacy", "-t", "mangle", "-N", detect.HintChain)
	host.Run(t, "iptables-legacy", "-A", "INPUT", "-j", "ACCEPT")
	host.Run(t, "iptables-nft", "-A", "INPUT", "-j", "ACCEPT")
	check(ExampleHost, "legacy: chain KUBE-IPTABLES-HINT is in legacy's mangle table (IPv6)\n")
	check(ExampleQuery_Wait, "legacy kubelet-hint\n")
	check(ExampleQuery_Run, `nft ipv4: hint no, 1 rule
nft ipv6: hint no, no rules
legacy ipv4: hint no, 1 rule
legacy ipv6: hint yes, no rules
conflict: rules-in-both
`)
}
