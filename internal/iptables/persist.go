// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package iptables

import (
	"errors"
	"time"
)

// ErrChanged means that what a question reads changed meanwhile, so that the answer may be incomplete.
var ErrChanged = errors.New("it changed while it was read")

// Persist asks at most three times, 10 ms apart, while the error is ErrChanged.
func Persist(ask func() error) error {
	for range 2 {
		err := ask()
		if !errors.Is(err, ErrChanged) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ask()
}
