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

// Each cause is said once, and all of them can be found.
func TestJoin(t *testing.T) {
	about := func(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }
	one := about("a", unix.EPERM)
	for _, test := range []struct {
		known, err error
		want       string
	}{
		{nil, nil, ""},
		{one, nil, "a: operation not permitted"},
		{nil, one, "a: operation not permitted"},
		{one, about("b", unix.EPERM), "a: operation not permitted"},
		{one, about("b", unix.ENOMEM), "a: operation not permitted\nb: cannot allocate memory"},
		{
			join(one, about("b", unix.ENOMEM)), about("c", about("d", unix.EPERM)),
			"a: operation not permitted\nb: cannot allocate memory",
		},
	} {
		got := join(test.known, test.err)
		text := ""
		if got != nil {
			text = got.Error()
		}
		if text != test.want {
			t.Errorf("got %q, want %q", text, test.want)
		}
		for _, err := range []error{test.known, test.err} {
			if err != nil && !errors.Is(got, cause(err)) {
				t.Errorf("%v is not in %v", err, got)
			}
		}
	}
}

// Of more tables of nf_tables than are read, the names of programs are unknown. That is no error. Any other failure to
// list them is one.
func TestTablesNotListed(t *testing.T) {
	for failed, want := range map[error]error{
		fmt.Errorf("list the tables: %w", nft.ErrTooLarge): nil,
		fmt.Errorf("list the tables: %w", unix.ENOMEM):     unix.ENOMEM,
	} {
		a := &nftAsker{kernel: Yes, listed: true, failed: failed}
		for _, f := range families {
			for _, n := range namesOf(programs, f) {
				got, err := a.has(n)
				if got != Unknown || !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("%v, %+v: got %v, %v", failed, n, got, err)
				}
			}
		}
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
			f = f.note(programs, Name{Family: IPv6, Chain: "DOCKER-USER"}, a, nil)
		}
		if f.Program != [2]Answer{NotAsked, test.want} || len(f.Names) != test.found {
			t.Errorf("%v: got %+v", test.answers, f)
		}
	}
}
