// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

// Because is stored in a link's content: it can be printed, and is short, whatever names somebody has made.
func TestBecauseIsShort(t *testing.T) {
	odd := strings.Repeat("\x00\n\xff\u202e", 100)
	b := works(Yes, Yes)
	b[IPv4].Native = []string{odd, odd + "a", odd + "b"}
	hosted := works(Yes, Yes)
	hosted[IPv6].HostChain, hosted[IPv6].Programs = Yes, []Program{{Name: "Docker", Table: odd, Chain: odd}}
	hinted := works(Yes, Yes)
	hinted[IPv4].Hint, hinted[IPv6].Hint = Yes, Yes
	broken := works(No, No)
	broken[IPv6].Lacks = "matches and targets of iptables (nft_compat)"
	for _, test := range []struct {
		q           Query
		nft, legacy Backend
		has         string
	}{
		{Query{}, b, works(Yes, Yes), "and 1 more"},
		{Query{}, hosted, works(Yes, Yes), "keeps its rules in nft"},
		{Query{Remembered: Decision{Mode: NFT, Because: odd}}, b, b, "remembered as a guess: "},
		{Query{Remembered: Decision{Mode: NFT, Conclusive: true, Because: "it is so"}}, b, b, "remembered: it is so"},
		{Query{Override: NFT}, b, b, "set explicitly"},
		{Query{}, hinted, hinted, "chain KUBE-IPTABLES-HINT is in nft's mangle table (IPv4, IPv6)"},
		{Query{}, broken, works(No, No), "install kernel-modules-extra on the node"},
		{Query{}, broken, works(Yes, Yes), "nf_tables lacks matches and targets of iptables (nft_compat)"},
		{Query{}, works(Yes, Yes), works(No, No), "does not support legacy"},
		{Query{}, works(No, No), works(No, No), "has no nf_tables"},
		{Query{}, count(1), works(Yes, Yes), "only nft has rules"},
		{Query{}, count(1), Backend{}, "whether legacy has any is not known"},
		{Query{}, count(1), count(2), "legacy has more"},
		{Query{Installed: Legacy}, works(Yes, Yes), works(Yes, Yes), "only the legacy programs are installed"},
		{Query{}, Backend{}, Backend{}, "no evidence was found"},
	} {
		d := test.q.Decide(test.nft, test.legacy)
		notPrintable := func(r rune) bool { return !unicode.IsPrint(r) }
		if b := d.Because; len(b) >= 200 || b == "" || strings.ContainsFunc(b, notPrintable) {
			t.Errorf("%s: got %q", d.Reason, b)
		}
		if long := strings.Contains(test.has, "more"); !strings.Contains(d.Because, test.has) && !long {
			t.Errorf("%s: got %q, want %q in it", d.Reason, d.Because, test.has)
		}
		if d.String() != string(d.Mode)+": "+d.Because {
			t.Errorf("got %q", d.String())
		}
		r := Result{Decision: d, NFT: test.nft, Legacy: test.legacy}
		if (r.Uncertainty() == "") != d.Conclusive {
			t.Errorf("%s, certain %v: got %q", d.Reason, d.Conclusive, r.Uncertainty())
		}
	}
}

func TestConflict(t *testing.T) {
	with := func(set func(*Backend)) Backend {
		b := works(Yes, Yes)
		set(&b)
		return b
	}
	hint4 := with(func(b *Backend) { b[IPv4].Hint = Yes })
	hint6 := with(func(b *Backend) { b[IPv6].Hint = Yes })
	hints := with(func(b *Backend) { b[IPv4].Hint, b[IPv6].Hint = Yes, Yes })
	canary := with(func(b *Backend) { b[IPv4].Canary = Yes })
	for _, test := range []struct {
		nft, legacy Backend
		want        string
	}{
		{hint4, works(Yes, Yes), ""},
		{works(Yes, Yes), Backend{}, ""},
		{hint4, hint6, "the families differ: chain KUBE-IPTABLES-HINT is in nft (IPv4) and in legacy (IPv6)"},
		{hints, hint6, "chain KUBE-IPTABLES-HINT is in both backends: "},
		{hint4, hint4, "chain KUBE-IPTABLES-HINT is in both backends: "},
		{canary, canary, "chain KUBE-KUBELET-CANARY is in both backends: "},
		{hint4, canary, "chain KUBE-KUBELET-CANARY is left over in legacy: "},
		{canary, hint6, "chain KUBE-KUBELET-CANARY is left over in nft: "},
	} {
		got := Result{NFT: test.nft, Legacy: test.legacy}.Conflict()
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// Wait asks until a result is enough, or the context ends.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		ask := func() Result {
			asked++
			return Result{Decision: Decision{Mode: NFT, Conclusive: asked == 4}}
		}
		certain := func(r Result) bool { return r.Conclusive }
		begin := time.Now()
		if r, err := Wait(t.Context(), ask, certain); !r.Conclusive || err != nil || asked != 4 ||
			time.Since(begin) != 3*pollInterval {
			t.Errorf("got %+v, %v, after %d questions, %v", r, err, asked, time.Since(begin))
		}
		asked = 9
		ctx, cancel := context.WithTimeout(t.Context(), time.Second+1)
		defer cancel()
		if r, err := Wait(ctx, ask, certain); r.Mode != NFT || !errors.Is(err, context.DeadlineExceeded) ||
			asked != 15 {
			t.Errorf("got %+v, %v, after %d questions", r, err, asked-9)
		}
		if r, err := Wait(ctx, ask, certain); r.Mode != NFT || err == nil || asked != 16 {
			t.Errorf("ended before: got %+v, %v", r, err)
		}
	})
}

func TestNames(t *testing.T) {
	for _, m := range Modes() {
		if !m.Valid() || m.Other().Other() != m || m.Other() == m {
			t.Errorf("%s: other %s", m, m.Other())
		}
	}
	if Mode("").Valid() || Mode("both").Other() != "" {
		t.Error("a mode that is none")
	}
	for a, want := range map[Answer]string{Unknown: "unknown", No: "no", Yes: "yes"} {
		if text, err := a.MarshalText(); string(text) != want || a.String() != want || err != nil {
			t.Errorf("got %q, %v", text, err)
		}
	}
	for _, r := range Reasons() {
		if r.Kubelet() != strings.HasPrefix(string(r), "kubelet-") {
			t.Errorf("%s", r)
		}
	}
}
