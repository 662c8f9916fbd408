// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
	"testing"
)

// about is what is known of a host. It changes what nothing() returns.
type about func(*Evidence)

// nothing is a host with both backends, which is known to have nothing in them.
func nothing() Evidence {
	no := [2]Answer{No, No}
	empty := Findings{Kernel: Yes, Hint: no, Canary: no, Program: no, Counted: Yes}
	return Evidence{NFT: empty, Legacy: empty, TakesRules: Yes}
}

// of returns the findings of a backend.
func (e *Evidence) of(b Backend) *Findings {
	if b == Legacy {
		return &e.Legacy
	}
	return &e.NFT
}

// name gives an answer to the question for one kind of name.
func name(k kind, b Backend, f Family, a Answer) about {
	return func(e *Evidence) { e.of(b).answers(k)[f] = a }
}

func number(b Backend, n int) about { return func(e *Evidence) { e.of(b).Rules = n } }

func kernel(b Backend, a Answer) about { return func(e *Evidence) { e.of(b).Kernel = a } }

func takesRules(a Answer) about { return func(e *Evidence) { e.TakesRules = a } }

func loadable(a Answer) about { return func(e *Evidence) { e.Loadable = a } }

func (e Evidence) with(changes []about) Evidence {
	for _, change := range changes {
		change(&e)
	}
	return e
}

// The rows of the table, in their order, each against what the rows below would say.
func TestRows(t *testing.T) {
	for _, test := range []struct {
		doc   string
		about []about
		want  string // backend, reason, certain
	}{
		{"nothing", nil, "nft default false"},
		{"rules in nft", []about{number(NFT, 1)}, "nft rule-count false"},
		{"rules in legacy", []about{number(Legacy, 1)}, "legacy rule-count false"},
		{"more in legacy", []about{number(NFT, 2), number(Legacy, 3)}, "legacy rule-count false"},
		{"as many in both", []about{number(NFT, 2), number(Legacy, 2)}, "nft rule-count false"},

		{"no nf_tables", []about{kernel(NFT, No), kernel(Legacy, Unknown)}, "legacy only-supported false"},
		{"no nf_tables, nor x_tables", []about{kernel(NFT, No), kernel(Legacy, No)}, "legacy only-supported false"},
		{"it is not known", []about{kernel(NFT, Unknown)}, "nft default false"},
		{"refused", []about{takesRules(No), number(NFT, 9)}, "legacy only-supported false"},
		{"refused, and no legacy", []about{takesRules(No), kernel(Legacy, No), loadable(No)}, "nft default false"},
		{
			"refused, and legacy can be loaded", []about{takesRules(No), kernel(Legacy, No), loadable(Yes)},
			"legacy only-supported false",
		},
		{
			"refused, and it is not known whether there is legacy", []about{takesRules(No), kernel(Legacy, Unknown)},
			"nft default false",
		},

		{
			"a program in legacy", []about{name(programs, Legacy, IPv4, Yes), number(NFT, 9)},
			"legacy host-program true",
		},
		{
			"a program in nft, which cannot take rules",
			[]about{name(programs, NFT, IPv6, Yes), takesRules(No), number(Legacy, 9)}, "nft host-program true",
		},
		{
			"a canary before a program", []about{name(canaries, Legacy, IPv4, Yes), name(programs, NFT, IPv4, Yes)},
			"legacy kubelet-canary true",
		},
		{
			"a hint before a canary", []about{name(hints, Legacy, IPv4, Yes), name(canaries, NFT, IPv4, Yes)},
			"legacy kubelet-hint true",
		},
	} {
		r := Decide(nothing().with(test.about), "")
		got := fmt.Sprint(r.Backend, " ", r.Reason, " ", r.Certain)
		if got != test.want || r.Because() == "" {
			t.Errorf("%s: got %s, %q, want %s", test.doc, got, r.Because(), test.want)
		}
	}
}

// An answer by a name is certain if the other backend is known to have no name of this kind or of a stronger one, in
// either family. IPv4 decides, and IPv6 where IPv4 has none.
func TestCertain(t *testing.T) {
	for k := hints; k <= programs; k++ {
		for _, b := range []Backend{NFT, Legacy} {
			for _, f := range families {
				here := name(k, b, f, Yes)
				check := func(doc string, backend Backend, certain bool, more ...about) {
					t.Helper()
					r := Decide(nothing().with(append(more, here)), "")
					if r.Backend != backend || r.Certain != certain || r.Reason != reasonOf[k] {
						t.Errorf("%v in %s, %s: %s: got %s %s %v", k, b, f, doc, r.Backend, r.Reason, r.Certain)
					}
				}
				other := b.Other()
				check("alone", b, true)
				check("in both families", b, true, name(k, b, 1-f, Yes))
				check("the other family is unknown", b, true, name(k, b, 1-f, Unknown))
				check("in both backends", NFT, false, name(k, other, f, Yes))
				byIPv4 := map[Family]Backend{IPv4: b, IPv6: other}[f]
				check("IPv4 and IPv6 differ", byIPv4, false, name(k, other, 1-f, Yes))
				for _, family := range families {
					for _, a := range []Answer{Unknown, NotAsked} {
						for stronger := hints; stronger <= k; stronger++ {
							check("not known", b, false, name(stronger, other, family, a))
						}
						for weaker := k + 1; weaker <= programs; weaker++ {
							check("only a weaker one is not known", b, true, name(weaker, other, family, a))
						}
						check("a number does not matter", b, true, number(other, 9), kernel(other, a), takesRules(a))
					}
				}
			}
		}
	}
}

var reasonOf = map[kind]Reason{hints: KubeletHint, canaries: KubeletCanary, programs: HostProgram}

// A guess gives way to what is held, and a certain answer does not.
func TestHeld(t *testing.T) {
	for _, held := range []Backend{NFT, Legacy} {
		for _, test := range []struct {
			doc   string
			about []about
			want  Backend // "": what is held
		}{
			{"nothing", nil, ""},
			{"more rules in the other one", []about{number(held.Other(), 9)}, ""},
			{"the kernel has only the other one", []about{kernel(held, No), takesRules(No)}, ""},
			{"a name in both", []about{name(hints, NFT, IPv4, Yes), name(hints, Legacy, IPv4, Yes)}, ""},
			{
				"a name in the other one, and this one is not known",
				[]about{name(hints, held.Other(), IPv4, Yes), name(hints, held, IPv6, Unknown)}, "",
			},
			{"a name in the other one", []about{name(programs, held.Other(), IPv6, Yes)}, held.Other()},
			{"a name in this one", []about{name(canaries, held, IPv4, Yes)}, held},
		} {
			r := Decide(nothing().with(test.about), held)
			certain := test.want != ""
			want := held
			if certain {
				want = test.want
			}
			if r.Backend != want || r.Certain != certain || (r.Reason == Held) == certain {
				t.Errorf("%s is held, %s: got %+v", held, test.doc, r)
			}
		}
	}
	r := Decide(nothing(), "auto")
	if r.Backend != NFT || r.Reason != Default {
		t.Errorf("what is no backend is held: got %+v", r)
	}
}

// Decide hands back what it was given.
func TestDecideReturnsEvidence(t *testing.T) {
	e := nothing().with([]about{number(NFT, 3), name(hints, Legacy, IPv6, Yes)})
	for _, held := range []Backend{"", NFT} {
		r := Decide(e, held)
		if fmt.Sprint(r.Evidence) != fmt.Sprint(e) {
			t.Errorf("got %+v, want %+v", r.Evidence, e)
		}
	}
}

func TestWords(t *testing.T) {
	if NFT.Other() != Legacy || Legacy.Other() != NFT || Backend("both").Other() != "" {
		t.Error("the other backend")
	}
	if !NFT.Valid() || !Legacy.Valid() || Backend("").Valid() || Backend("auto").Valid() {
		t.Error("what is a backend")
	}
	for f, want := range map[Family]string{IPv4: "IPv4", IPv6: "IPv6"} {
		text, err := f.MarshalText()
		if string(text) != want || f.String() != want || err != nil {
			t.Errorf("got %q, %v, want %q", text, err, want)
		}
	}
	r := Decide(Evidence{NFT: Findings{Kernel: No}}, "")
	if r.String() != "legacy: this kernel has no nf_tables" {
		t.Errorf("got %q", r)
	}
}
