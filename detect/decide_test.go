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

// marker gives an answer to the question for one kind of marker.
func marker(k Reason, b Backend, f Family, a Answer) about {
	return func(e *Evidence) { e.of(b).answers(k)[f] = a }
}

func number(b Backend, n int) about { return func(e *Evidence) { e.of(b).Rules = n } }

func kernel(b Backend, a Answer) about { return func(e *Evidence) { e.of(b).Kernel = a } }

func (e Evidence) with(changes []about) Evidence {
	for _, change := range changes {
		change(&e)
	}
	return e
}

func TestHeldIsNoBackend(t *testing.T) {
	r := Decide(nothing(), "auto")
	if r.Backend != NFT || r.Reason != Default {
		t.Errorf("what is no backend is held: got %+v", r)
	}
}

// Decide hands back what it was given.
func TestDecideReturnsEvidence(t *testing.T) {
	e := nothing().with([]about{number(NFT, 3), marker(KubeletHint, Legacy, IPv6, Yes)})
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
	for a, want := range map[Answer]string{NotAsked: "not asked", Unknown: "unknown", No: "no", Yes: "yes"} {
		text, err := a.MarshalText()
		if string(text) != want || a.String() != want || err != nil {
			t.Errorf("got %q, %v, want %q", text, err, want)
		}
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
