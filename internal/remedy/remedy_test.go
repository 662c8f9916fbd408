// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
)

// Each row is the answer to its own error: no earlier row hides it. A call never ends with status 0 or 1.
func TestRows(t *testing.T) {
	for _, row := range table() {
		err := row.is
		if err == errExec {
			err = &os.PathError{Op: "execve", Err: unix.EIO}
		}
		switch {
		case row.at == errExec:
			err = &os.PathError{Op: "execute", Err: row.is}
		case row.at != nil:
			err = fmt.Errorf("%w: %w", row.at, row.is)
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

// What helps depends on what failed. An errno alone says nothing.
func TestFor(t *testing.T) {
	execve := func(errno unix.Errno) error { return &os.PathError{Op: "execve", Path: "/x", Err: errno} }
	for _, test := range []struct {
		err    error
		status int
		does   string // what the line contains
	}{
		{err: exec.ErrMissing, status: 127, does: "set " + plan.Variable},
		{err: fmt.Errorf("%w (nft: %w)", exec.ErrMissing, plan.ErrByVariable), status: 127,
			does: "change " + plan.Variable},
		{err: fmt.Errorf("%w: %w", ErrInstall, exec.ErrMissing), status: 126, does: "with both backends"},
		{err: fmt.Errorf("%w: %w", exec.ErrMissing, file.ErrExposed), status: 127, does: "chmod go-w"},
		{err: execve(unix.ENOENT), status: 127, does: "its loader"},
		{err: execve(unix.EPERM), status: 126, does: "capabilities"},
		{err: execve(unix.EIO), status: 126, does: Unknown},
		{err: unix.ENOENT, status: 126},
		{err: unix.EPERM, status: 126},
		{err: unix.EROFS, status: 126},
		{err: fmt.Errorf("%w: %w", link.ErrDir, unix.EROFS), status: 126, does: "set " + plan.Variable},
		{err: fmt.Errorf("%w: %w (%w)", link.ErrDir, unix.EROFS, link.ErrStored), status: 126,
			does: "RUN iptables-wrapper reset"},
		{err: fmt.Errorf("%w: %w: %w", ErrInstall, link.ErrDir, unix.EROFS), status: 126,
			does: "RUN iptables-wrapper install"},
		{err: fmt.Errorf("%w: %w", link.ErrDir, unix.EPERM), status: 126, does: "lsattr -d"},
		{err: fmt.Errorf("%w: %w", link.ErrDir, unix.ENOSPC), status: 126, does: "free space"},
		{err: fmt.Errorf("%w: %w", link.ErrDir, unix.EIO), status: 126, does: "check that directory"},
		{err: fmt.Errorf("%w: %w", ErrInstall, unix.ENOENT), status: 126, does: "check that path"},
		{err: plan.ErrVariable, status: 2, does: "unset it"},
		{err: errors.New("unknown"), status: 126},
	} {
		status, try := For(test.err)
		if status != test.status || !strings.Contains(try, test.does) || test.does == "" && try != "" {
			t.Errorf("%v: got status %d, %q", test.err, status, try)
		}
	}
}
