// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package iptables

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// What was spoiled by a change is read again, three times at most. What was refused is not.
func TestPersist(t *testing.T) {
	for _, test := range []struct {
		err   error
		fails int // so often, then it succeeds
		tries int
	}{
		{nil, 0, 1},
		{ErrChanged, 1, 2},
		{fmt.Errorf("read the rules: %w", ErrChanged), 2, 3},
		{fmt.Errorf("read table: %w", ErrChanged), 9, 3},
		{unix.EPERM, 9, 1},
		{unix.EAGAIN, 9, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			begin := time.Now()
			err := Persist(func() error {
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
