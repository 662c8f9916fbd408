// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// tries counts what a process does for the lock.
func tries(d *Dir, before func(n int)) (n *int) {
	n = new(int)
	d.Step = func(operation, _ string) {
		if operation == "lock" {
			*n++
			before(*n)
		}
	}
	return n
}

func TestLock(t *testing.T) {
	top := t.TempDir()
	for _, test := range []struct {
		doc         string
		patience    time.Duration // in milliseconds, a try each
		releasedAt  int           // the try before which the lock is released
		tries       int
		unavailable bool
	}{
		{doc: "tries once", patience: 0, tries: 1, unavailable: true},
		{doc: "tries four times", patience: 3, tries: 4, unavailable: true},
		{doc: "gets it when the other one ends", patience: 3, releasedAt: 2, tries: 2},
		{doc: "gets it at the last try", patience: 3, releasedAt: 4, tries: 4},
	} {
		one, err := Open(top)
		host.Check(t, err)
		other, err := Open(top)
		host.Check(t, err)
		host.Check(t, one.Lock(0))
		n := tries(other, func(n int) {
			if n == test.releasedAt {
				one.Close()
			}
		})
		err = other.Lock(test.patience * time.Millisecond)
		if errors.Is(err, unix.EWOULDBLOCK) != test.unavailable || !test.unavailable && err != nil || *n != test.tries {
			t.Errorf("%s: got %v after %d tries", test.doc, err, *n)
		}
		if test.releasedAt == 0 {
			one.Close()
		}
		other.Close()
	}
	host.Check(t, open(t, top).Lock(0)) // nothing is left
}
