// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Which backend does this host use?
func ExampleHost() {
	r := detect.Host()
	fmt.Println(r.Mode, r.Reason)
	if !r.Conclusive {
		fmt.Println("a guess: it holds for now, and is not to be kept")
	}
}

// All evidence, also what cannot change the answer.
func ExampleQuery_Run() {
	r := detect.Query{Everything: true}.Run()
	for _, e := range r.Evidence {
		fmt.Printf("%s %s: hint %s", e.Backend, e.Family, e.Hint)
		if e.Rules.Min == e.Rules.Max {
			fmt.Printf(", %d rules", e.Rules.Min)
		}
		if e.Err != nil {
			fmt.Printf(", %v", e.Err)
		}
		fmt.Println()
	}
	for _, c := range r.Conflicts {
		fmt.Println("conflict:", c)
	}
}

// At boot, before kubelet has started: wait for it.
func ExampleQuery_Wait() {
	r, blind := detect.Query{}.Wait(200 * time.Millisecond)
	if blind != nil {
		fmt.Printf("looked every %s only: %v\n", detect.PollInterval, blind)
	}
	if !r.Conclusive {
		fmt.Println("nothing came")
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
	check(ExampleHost, "nft default\na guess: it holds for now, and is not to be kept\n")
	check(ExampleQuery_Wait, "nothing came\n")
	host.Run(t, "ip6tables-legacy", "-t", "mangle", "-N", detect.HintChain)
	host.Run(t, "iptables-legacy", "-A", "INPUT", "-j", "ACCEPT")
	host.Run(t, "iptables-nft", "-A", "INPUT", "-j", "ACCEPT")
	check(ExampleHost, "legacy kubelet-hint\n")
	check(ExampleQuery_Wait, "legacy kubelet-hint\n")
	check(ExampleQuery_Run, `nft ipv4: hint no, 1 rules
nft ipv6: hint no, 0 rules
legacy ipv4: hint no, 1 rules
legacy ipv6: hint yes, 0 rules
conflict: rules-in-both
`)
}
