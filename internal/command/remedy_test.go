// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// Whatever is missing, a command that was not permitted to do something says who may.
func TestRunAsRoot(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("reset: %w", &os.PathError{Op: "open", Path: "/x", Err: unix.EACCES}),
			"iptables-wrapper: reset: open /x: permission denied\niptables-wrapper: try: run as root\n"},
		{failure{1, unix.EPERM, ""}, "iptables-wrapper: operation not permitted\niptables-wrapper: try: run as root\n"},
		{fmt.Errorf("reset: %w", memory.ErrRoots),
			"iptables-wrapper: reset: root's memory of this container says otherwise\n" +
				"iptables-wrapper: try: run as root\n"},
		{failure{1, unix.EPERM, "this needs CAP_SYS_ADMIN"},
			"iptables-wrapper: operation not permitted\niptables-wrapper: try: this needs CAP_SYS_ADMIN\n"},
		{errors.Join(unix.ENOENT, unix.EROFS),
			"iptables-wrapper: no such file or directory\niptables-wrapper: read-only file system\n"},
		{failure{status: 1}, ""},
	} {
		var stderr bytes.Buffer
		s := &session{stdout: bufio.NewWriter(io.Discard), stderr: &stderr}
		if status := s.printError(test.err); status != 1 || stderr.String() != test.want {
			t.Errorf("%v: status %d, %q, want %q", test.err, status, stderr.String(), test.want)
		}
	}
}

// A file that is not there need not be the directory of --dir: what is said of the error in general comes first.
func TestAboutDir(t *testing.T) {
	var flags flag.FlagSet
	flags.String("dir", "/x", "")
	if err := flags.Set("dir", "/x"); err != nil {
		t.Fatal(err)
	}
	c := cli.NewContext(nil, &flags, nil)
	interpreter := &os.PathError{Op: "fork/exec", Path: "/usr/bin/update-alternatives", Err: unix.ENOENT}
	for _, test := range []struct {
		err  error
		want string
	}{
		{&os.PathError{Op: "open", Path: "/x", Err: unix.ENOENT}, rightDir},
		{fmt.Errorf("%w: %w", install.ErrAlternatives, interpreter),
			"--alternatives=never, which creates plain symlinks"},
		{errors.Join(unix.EACCES, unix.ENOENT), "run as root"},
	} {
		var stderr bytes.Buffer
		s := &session{stdout: bufio.NewWriter(io.Discard), stderr: &stderr}
		s.printError(aboutDir(c, test.err))
		if want := "iptables-wrapper: try: " + test.want + "\n"; !strings.HasSuffix(stderr.String(), want) {
			t.Errorf("%v: got %q, want %q at its end", test.err, stderr.String(), want)
		}
	}
}
