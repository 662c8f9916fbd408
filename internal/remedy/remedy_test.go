// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// Each row is the answer to its own error: no earlier row hides it. A call never ends with status 0 or 1.
func TestRows(t *testing.T) {
	for _, row := range table() {
		err := row.is
		if row.and != nil {
			err = fmt.Errorf("%w: %w", row.and, row.is)
		}
		status, try := For(fmt.Errorf("a call: %w", err))
		if try != row.try || status < 2 {
			t.Errorf("%v: got status %d, %q", err, status, try)
		}
		if strings.Contains(try, "\n") || try == "" {
			t.Errorf("%v: %q is not one line", err, try)
		}
	}
}

// What helps depends on where the error happened.
func TestFor(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		does   string // what the line contains
	}{
		{err: exec.ErrMissing, status: 127, does: "set " + Variable},
		{err: fmt.Errorf("%w (nft: %w)", exec.ErrMissing, ErrByVariable), status: 127, does: "change " + Variable},
		{err: fmt.Errorf("%w: %w", ErrInstall, exec.ErrMissing), status: 126, does: "with both backends"},
		{err: unix.EROFS, status: 126, does: "set " + Variable},
		{err: fmt.Errorf("%w (%w)", unix.EROFS, link.ErrStored), status: 126, does: "RUN iptables-wrapper reset"},
		{err: fmt.Errorf("%w: %w", ErrInstall, unix.EROFS), status: 126, does: "RUN iptables-wrapper install"},
		{err: ErrVariable, status: 2, does: "unset it"},
		{err: errors.New("unknown"), status: 126},
	} {
		status, try := For(test.err)
		if status != test.status || !strings.Contains(try, test.does) || test.does == "" && try != "" {
			t.Errorf("%v: got status %d, %q", test.err, status, try)
		}
	}
}
