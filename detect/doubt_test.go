// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import "testing"

// A result that only Doubt has made a guess is worth remembering, close as the count is. One that is a guess anyhow is
// so only where it is clear.
func TestDoubt(t *testing.T) {
	evidence := unasked()
	for i, n := range []int{5, 0, 3, 0} {
		e := &evidence[i]
		e.Hint = No
		e.Canary = No
		e.HostChain = No
		e.HostTable = No
		e.Rules = exactly(n)
	}
	const why = "somebody guessed"
	count := Query{}.result(evidence)
	if !count.Conclusive || count.Uncertainty() != "" {
		t.Fatalf("nobody guessed: got %+v", count)
	}
	for _, doubted := range []Result{count.Doubt(why), count.Doubt("something else").Doubt(why)} {
		if doubted.Conclusive || doubted.Mode != NFT || doubted.Reason != RuleCount || doubted.Memorable() != nil ||
			doubted.Uncertainty() != why || doubted.Because() != count.Because() {
			t.Errorf("got %+v, %v, %s", doubted, doubted.Memorable(), doubted.Uncertainty())
		}
	}
	evidence[2].Rules.Max = Unbounded
	evidence[2].fail(errTooMuch)
	guess := Query{}.result(evidence).Doubt(why)
	if guess.Conclusive || guess.Memorable() == nil || guess.Uncertainty() != why {
		t.Errorf("unknown rules: got %+v, %v, %s", guess, guess.Memorable(), guess.Uncertainty())
	}
}
