// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What was spoiled by a change is read again, three times at most. What was refused is not.
func TestPersist(t *testing.T) {
	for _, test := range []struct {
		err   error
		fails int // so often, then it succeeds
		tries int
	}{
		{nil, 0, 1},
		{nft.ErrChanged, 1, 2},
		{fmt.Errorf("read the rules: %w", nft.ErrChanged), 2, 3},
		{fmt.Errorf("read table: %w", xtables.ErrChanged), 9, 3},
		{nft.ErrTooLarge, 9, 1},
		{unix.EPERM, 9, 1},
		{unix.EAGAIN, 9, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			begin := time.Now()
			err := persist(func() error {
				tries++
				if tries <= test.fails {
					return test.err
				}
				return nil
			})
			failed := test.fails >= test.tries
			if tries != test.tries || failed && err != test.err || !failed && err != nil {
				t.Errorf("%v: got %v after %d tries", test.err, err, tries)
			}
			if waited := time.Since(begin); waited != time.Duration(tries-1)*10*time.Millisecond {
				t.Errorf("%v: %d tries took %v", test.err, tries, waited)
			}
		})
	}
}

// That one family is not known hides no answer of the other one, and is hidden by no No.
func TestEither(t *testing.T) {
	for _, test := range []struct{ one, other, want Answer }{
		{one: Yes, other: Yes, want: Yes},
		{one: Yes, other: No, want: Yes},
		{one: Yes, other: Unknown, want: Yes},
		{one: No, other: Yes, want: Yes},
		{one: No, other: No, want: No},
		{one: No, other: Unknown, want: Unknown},
		{one: Unknown, other: Yes, want: Yes},
		{one: Unknown, other: No, want: Unknown},
		{one: Unknown, other: Unknown, want: Unknown},
	} {
		got := either(test.one, test.other)
		if got != test.want {
			t.Errorf("%v, %v: got %v", test.one, test.other, got)
		}
	}
}

// The first question that failed is described, in each backend.
func TestFirstError(t *testing.T) {
	first, second := fmt.Errorf("a: %w", unix.EPERM), fmt.Errorf("b: %w", unix.ENOMEM)
	f := Findings{}.note(Marker{}, No, nil).note(Marker{}, Unknown, first).note(Marker{}, Unknown, second)
	if f.Err != first {
		t.Errorf("got %v", f.Err)
	}
}

// A name that could not be asked for is unknown.
func TestNameRefused(t *testing.T) {
	host.Netns(t)
	a := &asker{}
	defer a.nft.Close()
	host.RefuseCall(t, unix.SYS_SENDTO, unix.ENOMEM)
	f := a.askNFT(Findings{Kernel: Yes}, HostProgram)
	if f.Program != [2]Answer{Unknown, Unknown} || !errors.Is(f.Err, unix.ENOMEM) {
		t.Errorf("got %+v", f)
	}
}

// Of several names of a kind, one is a yes. One that is unknown makes the rest no more than unknown.
func TestNote(t *testing.T) {
	for _, test := range []struct {
		answers []Answer
		want    Answer
		found   int
	}{
		{[]Answer{No, No}, No, 0},
		{[]Answer{No, Unknown, No}, Unknown, 0},
		{[]Answer{Unknown, Yes}, Yes, 1},
		{[]Answer{Yes, Unknown, Yes, No}, Yes, 2},
	} {
		var f Findings
		for _, a := range test.answers {
			f = f.note(Marker{Family: IPv6, Chain: "DOCKER-USER"}, a, nil)
		}
		if f.Program != [2]Answer{NotAsked, test.want} || len(f.Markers) != test.found {
			t.Errorf("%v: got %+v", test.answers, f)
		}
	}
}
