// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// BenchmarkHost is what a first call pays for the decision. With a hint it must not depend on the number of rules.
func BenchmarkHost(b *testing.B) {
	for _, backend := range []Mode{NFT, Legacy} {
		for _, hint := range []bool{true, false} {
			for _, rules := range []int{0, 1_000, 10_000} {
				b.Run(fmt.Sprintf("%s/hint=%v/rules=%d", backend, hint, rules), func(b *testing.B) {
					host.Netns(b)
					if hint {
						host.Run(b, program(backend, IPv4, ""), "-w", "-t", mangle, "-N", HintChain)
					}
					var s strings.Builder
					s.WriteString("*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\n")
					for i := range rules - 1 {
						fmt.Fprintf(&s, "-A KUBE-SERVICES -d 10.%d.%d.%d/32 -p tcp -m comment --comment \"ns/svc-%d "+
							"cluster IP\" -m tcp --dport 80 -j RETURN\n",
							i>>16, i>>8&255, i&255, i)
					}
					s.WriteString("COMMIT\n")
					if rules > 0 {
						host.Feed(b, s.String(), program(backend, IPv4, "-restore"), "-w")
					}
					want := Default
					if hint {
						want = KubeletHint
					} else if rules > 0 {
						want = RuleCount
					}
					var took []time.Duration
					for b.Loop() {
						start := time.Now()
						r := Host()
						took = append(took, time.Since(start))
						if r.Reason != want || want != Default && r.Mode != backend {
							b.Fatalf("got %v %v, want %v", r.Mode, r.Reason, want)
						}
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "median-µs")
				})
			}
		}
	}
}

// BenchmarkQuestion is what each question costs.
func BenchmarkQuestion(b *testing.B) {
	for _, question := range []struct {
		name string
		ask  func(*prober) error
	}{
		{"nft chain that exists", func(p *prober) error { _, err := p.nft.chain(IPv4, HintChain); return err }},
		{"nft chain that does not", func(p *prober) error { _, err := p.nft.chain(IPv4, "NO-SUCH-CHAIN"); return err }},
		{"nft chains", func(p *prober) error { _, err := p.nft.tables(IPv4); return err }},
		{"nft rules", func(p *prober) error { _, err := p.nft.rules(IPv4, "filter", unlimited); return err }},
		{"nft dry run", func(p *prober) error { return p.nft.run(newDryRun(1, true)) }},
		{"legacy list", func(p *prober) error { p.legacy[0].list(); return p.legacy[0].err }},
		{"legacy chains", func(p *prober) error { _, err := p.legacy[0].entries(mangle); return err }},
		{"legacy header", func(p *prober) error { _, err := p.legacy[0].info("filter"); return err }},
		{"legacy rules", func(p *prober) error { _, err := p.legacy[0].entries("filter"); return err }},
	} {
		b.Run(question.name, func(b *testing.B) {
			host.Netns(b)
			for _, backend := range []Mode{NFT, Legacy} {
				host.Run(b, program(backend, IPv4, ""), "-w", "-t", mangle, "-N", HintChain)
				rules := "*filter\n" + strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 1000) + "COMMIT\n"
				host.Feed(b, rules, program(backend, IPv4, "-restore"), "-w")
			}
			b.ReportAllocs()
			for b.Loop() {
				p := newProber(Query{})
				if err := question.ask(p); err != nil {
					b.Fatal(err)
				}
				p.close()
			}
		})
	}
}
