// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Random tables of both backends, and what becomes of each of eight packets: what passed before the printed removal
// passes after it, and what a rule dropped is dropped. X and Z are left over; V is in both and stays; Y and W are
// chains of one backend. Some rules are not what was printed.
func TestRemovalAndPackets(t *testing.T) {
	count := 100_000
	if value := os.Getenv("TEST_REMOVALS"); value != "" {
		var err error
		count, err = strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 0)) // the first tables are always the same
	removed := 0
	for range count {
		other, printed, host := randomTables(random)
		x := planRemoval(removal{backend: detect.Legacy, chains: []string{"X", "Z"}}, printed, host, false)
		if x.byHand() {
			continue
		}
		removed++
		after := x.applied(other)
		for packet := range 1 << len(conditions) {
			was, byPolicy := other.verdict(packet)
			hosts, _ := host.verdict(packet)
			is, _ := after.verdict(packet)
			cut := was == accept && hosts == accept && is != accept
			meant := byPolicy && packet != 0 // the host's own rules decide, unless it accepts what meets no condition
			opened := was != accept && !meant && hosts == accept && is == accept
			if cut || opened {
				t.Fatalf("packet %03b: cut %v, opened %v\nother:\n%s\nprinted:\n%s\nhost:\n%s", packet, cut, opened,
					other.text(), printed.text(), host.text())
			}
		}
	}
	t.Logf("%d of %d removals are printed", removed, count)
	if removed < count/100 {
		t.Errorf("%d of %d removals are printed", removed, count)
	}
}

// conditions of rules: each is true of half of the packets.
var conditions = []string{"-i eth0", "-p tcp", "-s 192.0.2.1"}

func randomTables(random *rand.Rand) (other, printed, host *saved) {
	verdicts := []string{accept, "DROP"}
	other = &saved{family: detect.IPv4, name: "filter", chains: []string{"V", "X", "Y", "Z"}}
	host = &saved{family: detect.IPv4, name: "filter", chains: []string{"V", "X", "Z", "W"}}
	for _, t := range []*saved{other, host} {
		for _, chain := range []string{"INPUT", "FORWARD"} {
			t.policies = append(t.policies, policy{chain, verdicts[random.IntN(2)]})
		}
	}
	for range 1 + random.IntN(6) {
		other.rules = append(other.rules, randomRule(random, "Y"))
	}
	printed = misprint(random, other)
	for _, rule := range printed.rules {
		own := rule.chain == "Y" || rule.target == "Y"
		rule.inexact = false
		if !own && random.IntN(5) > 0 {
			host.rules = append(host.rules, rule)
		}
	}
	for range random.IntN(4) {
		host.rules = slices.Insert(host.rules, random.IntN(len(host.rules)+1), randomRule(random, "W"))
	}
	return other, printed, host
}

// misprint returns a table as it may be printed if nft has made some of its rules: with other conditions.
func misprint(random *rand.Rand, t *saved) *saved {
	printed := *t
	printed.rules = slices.Clone(t.rules)
	printed.native = map[string]bool{}
	for i := range printed.rules {
		if random.IntN(20) > 0 {
			continue
		}
		rule := &printed.rules[i]
		rule.inexact = true
		rule.spec = conditions[random.IntN(len(conditions))] + " " + rule.spec
		printed.native[rule.chain] = true
	}
	return &printed
}

// randomRule leads from a chain to one that is behind it in the order of its table, so that there is no loop. own is
// the chain that the other table does not have.
func randomRule(random *rand.Rand, own string) savedRule {
	order := []string{"FORWARD", "V", "X", "Y", "Z"}
	if own == "W" {
		order = []string{"FORWARD", "V", "W", "X", "Z"}
	}
	from := random.IntN(len(order))
	targets := append([]string{accept, "DROP", "RETURN"}, order[from+1:]...)
	target := targets[random.IntN(len(targets))]
	words := []string{"-A", order[from]}
	if random.IntN(3) > 0 {
		words = append(words, strings.Fields(conditions[random.IntN(len(conditions))])...)
	}
	option := "-j"
	if slices.Contains(order, target) && random.IntN(6) == 0 {
		option = "-g"
	}
	return parseRule(append(words, option, target))
}

func (r savedRule) matches(packet int) bool {
	for bit, condition := range conditions {
		if strings.HasPrefix(r.spec, condition) {
			return packet&(1<<bit) != 0
		}
	}
	return true
}

// verdict is what becomes of a packet in FORWARD.
func (t *saved) verdict(packet int) (verdict string, byPolicy bool) {
	verdict = t.walk("FORWARD", packet)
	if verdict != "" {
		return verdict, false
	}
	for _, p := range t.policies {
		if p.chain == "FORWARD" {
			verdict = p.verdict
		}
	}
	return verdict, true
}

// walk is the verdict of a chain, "" if it has none.
func (t *saved) walk(chain string, packet int) string {
	for _, rule := range t.inChains([]string{chain}) {
		if !rule.matches(packet) {
			continue
		}
		if rule.target == "RETURN" {
			return ""
		}
		if !t.isChain(rule.target) {
			return rule.target
		}
		verdict := t.walk(rule.target, packet)
		if verdict != "" || rule.diverts {
			return verdict
		}
	}
	return ""
}

// applied is the table as the printed commands leave it.
func (x removal) applied(t *saved) *saved {
	after := *t
	after.rules = x.staying(t, append([]string{"INPUT", "FORWARD"}, t.chains...))
	after.policies = slices.Clone(t.policies)
	for i, p := range after.policies {
		if slices.Contains(x.opened, p.chain) {
			after.policies[i].verdict = accept
		}
	}
	return &after
}

func (t *saved) text() string {
	var b strings.Builder
	for _, p := range t.policies {
		b.WriteString("-P " + p.chain + " " + p.verdict + "\n")
	}
	for _, rule := range t.rules {
		b.WriteString("-A " + rule.chain + " " + rule.spec + "\n")
	}
	return b.String()
}
