// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

func TestParse(t *testing.T) {
	const because = "nft has 15 rules"
	count := detect.Memory{Mode: "nft", Reason: "rule-count", Conclusive: true, Because: because}
	byDefault := detect.Memory{Mode: "legacy", Reason: "default", Because: "nothing"}
	for _, test := range []struct {
		target string
		want   detect.Memory
		state  State
		maker  process
	}{
		{target: "nft", want: detect.Memory{Mode: "nft"}, state: Guess}, // the form of former versions
		{target: "legacy", want: detect.Memory{Mode: "legacy"}, state: Guess},
		{target: "nft something new", want: detect.Memory{Mode: "nft"}, state: Guess},
		{target: "nft rule-count certain LIFE " + because, want: count, state: certain},
		{target: "legacy default guess LIFE nothing", want: byDefault, state: Guess},
		{
			target: "legacy default guess:4711.98765 LIFE nothing",
			want:   byDefault, state: Guess, maker: process{4711, "98765"},
		},
		{target: "legacy default guess:4711 LIFE nothing", want: byDefault, state: Guess}, // who has that ID now?
		{target: "legacy default guess:4711. LIFE nothing", want: byDefault, state: Guess},
		{target: "legacy default guess:4711.x LIFE nothing", want: byDefault, state: Guess},
		{target: "legacy default guess:-1.98765 LIFE nothing", want: byDefault, state: Guess},
		{target: "legacy default guess:0.98765 LIFE nothing", want: byDefault, state: Guess},
		{target: "legacy default blind LIFE nothing", want: byDefault, state: Blind},
		{
			target: "legacy default blind LIFE a line\nand another",
			want:   detect.Memory{Mode: "legacy", Reason: "default"}, state: Blind,
		},
		{
			target: "legacy default blind LIFE \nanother line",
			want:   detect.Memory{Mode: "legacy", Reason: "default"}, state: Blind,
		},
		{target: "nft by-magic certain LIFE", want: detect.Memory{Mode: "nft"}, state: certain},
		{target: "nft rule-count surely LIFE", want: detect.Memory{Mode: "nft", Reason: "rule-count"}, state: "surely"},
	} {
		target := strings.Replace(test.target, "LIFE", life, 1)
		c, ok := parse(target, thisLife)
		if c != (content{test.want, test.state, test.maker}) || !ok {
			t.Errorf("%q: got %+v, %v", target, c, ok)
		}
	}
	for _, none := range []string{"nft rule-count certain 7.4712.0badcafe", "", "NFT", "nftables rule-count"} {
		c, ok := parse(none, thisLife)
		if c != (content{}) || ok {
			t.Errorf("%q: got %+v, %v", none, c, ok)
		}
	}
}

// What is written is what is read.
func TestTarget(t *testing.T) {
	m := Memory{life: thisLife}
	for _, want := range []detect.Memory{
		{
			Mode:       detect.NFT,
			Reason:     detect.RuleCount,
			Conclusive: true,
			Because:    "nft has 15 rules and legacy has no rules",
		},
		{Mode: detect.Legacy, Reason: detect.Default},
		{Mode: detect.Legacy, Reason: detect.Override, Because: "somebody selected it"},
	} {
		for _, state := range []State{Guess, Blind, Unbound} {
			c, ok := parse(m.target(want, state), thisLife)
			maker := thisProcess()
			if want.Conclusive || state == Unbound || want.Reason == detect.Override {
				maker = process{}
			}
			if want.Conclusive {
				state = certain
			}
			if c != (content{want, state, maker}) || !ok {
				t.Errorf("got %+v, %v, want %+v", c, ok, want)
			}
		}
	}
}

// The name and the life of a memory are read back as they were written, and nothing else is.
func TestName(t *testing.T) {
	for _, about := range []Life{thisLife, {Netns: "4026531840", Start: "1", Boot: ""}} {
		uid, read, ok := parseName(name(1000, about))
		if uid != 1000 || read != about || !ok {
			t.Errorf("%+v: got %d, %+v, %v", about, uid, read, ok)
		}
	}
	for _, other := range []string{
		"",
		"iptables-wrapper",
		"iptables-wrapper.0",
		"iptables-wrapper.0.7.4711",
		"iptables-wrappers.0." + life,
		".iptables-wrapper.0." + life,
		"iptables-wrapper.+1." + life,
		"iptables-wrapper.-1." + life,
		"iptables-wrapper.." + life,
		"iptables-wrapper.x." + life,
		"iptables-wrapper.0.7..0badcafe",
		"iptables-wrapper.0..4711.0badcafe",
		"iptables-wrapper.0.7.4711.0BADCAFE",
		"iptables-wrapper.0.7.4711.0badcafe0",
		"iptables-wrapper.0.7.4711.0badcafe.1",
		"iptables-wrapper.0.7.4711\nforged.0badcafe",
	} {
		uid, about, ok := parseName(other)
		if ok {
			t.Errorf("%q: got %d, %+v", other, uid, about)
		}
	}
}

func TestParseStat(t *testing.T) {
	stat := "1 (a) b (c)) S 0 1 1 0 -1 4194560 10 0 0 0 1 2 0 0 20 0 1 0 4711 9 9"
	state, start := parseStat([]byte(stat))
	if state != "S" || start != "4711" {
		t.Errorf("got %q, %q", state, start)
	}
	for n := range len(stat) - len("4711 9 9") {
		state, start := parseStat([]byte(stat[:n]))
		if state != "" || start != "" {
			t.Fatalf("%q: got %q, %q", stat[:n], state, start)
		}
	}
}
