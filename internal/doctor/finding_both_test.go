// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// What the other backend has, and how much of that was read.
func TestBothBackends(t *testing.T) {
	const (
		begin  = "The other backend, legacy, has "
		end    = ". Packets pass both backends, and iptables here does not list this one."
		unsure = " Doctor could not read all of them, so it does not know whether they drop or redirect packets."
	)
	accept, drop := iptables.Rule{Target: "ACCEPT"}, iptables.Rule{Target: "DROP"}
	for _, test := range []struct {
		doc     string
		chains  []iptables.Chain
		isPart  bool
		counted int
		want    string
	}{
		{doc: "nothing"},
		{
			doc:    "all was read",
			chains: []iptables.Chain{{Name: "INPUT", Base: true, Rules: []iptables.Rule{accept}}},
			want:   begin + "1 rule of unknown programs" + end,
		},
		{
			doc: "fewer were counted than read", isPart: true,
			chains: []iptables.Chain{{Name: "INPUT", Base: true, Rules: []iptables.Rule{accept}}},
			want:   begin + "about 1 rule of unknown programs" + end + unsure,
		},
		{
			doc: "more were counted than read", isPart: true, counted: 3,
			chains: []iptables.Chain{{Name: "INPUT", Base: true, Rules: []iptables.Rule{accept}}},
			want:   begin + "about 3 rules of unknown programs" + end + unsure,
		},
		{
			doc: "what was read has an effect", isPart: true,
			chains: []iptables.Chain{{Name: "INPUT", Base: true, Rules: []iptables.Rule{drop}}},
			want: "Packets that nft accepts may be dropped: legacy has 1 rule with DROP or REJECT. " + begin +
				"about 1 rule of unknown programs" + end,
		},
		{
			doc: "a policy, and no rule was read", isPart: true,
			chains: []iptables.Chain{{Name: "INPUT", Base: true, Drops: true}},
			want: "Packets that nft accepts may be dropped: legacy has the policy DROP for INPUT (ip filter). " +
				begin + "no rules" + end,
		},
		{
			doc: "two programs",
			chains: []iptables.Chain{
				{Name: "cali-x", Rules: []iptables.Rule{accept}},
				{Name: "ts-x", Rules: []iptables.Rule{accept, accept}},
			},
			want: begin + "3 rules of Tailscale, Calico" + end,
		},
		{
			doc:    "rules of kube-proxy that change no destination",
			chains: []iptables.Chain{{Name: "KUBE-FORWARD", Base: true, Rules: []iptables.Rule{accept}}},
			want:   begin + "1 rule of kube-proxy" + end,
		},
	} {
		s := permitted()
		s.legacy = contents{tables: []iptables.Table{{Name: "filter", Chains: test.chains}}, whole: !test.isPart}
		s.host.Evidence.Legacy.Rules = test.counted
		found := s.bothBackends()
		if found == nil != (test.want == "") || found != nil && found.Text != test.want {
			t.Errorf("%s: got %+v, want %q", test.doc, found, test.want)
		}
	}
}
