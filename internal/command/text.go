// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// All that a user sees is printed here.
//
//	stdout  results. They are buffered, and an error of writing makes the command fail.
//	stderr  lines for people, each after the program's name. An error has a second line with what to do.
//
// A name from the kernel or a file can contain any character. Unprintable ones become spaces.

// failure ends a command with a status.
type failure struct {
	status int
	err    error  // nil: the command has printed everything
	try    string // what to do; "": see remedies
}

const (
	statusFailure   = 1
	statusUsage     = 2
	statusUncertain = 3
)

func (f failure) Error() string { return fmt.Sprint(f.err) }
func (f failure) Unwrap() error { return f.err }

// remedies are what to do about errors. The first match wins.
var remedies = []struct {
	err error
	try string
}{
	{file.ErrExposed, "chown that directory to root, and chmod go-w it"},
	{exec.ErrMissing, "install that backend's iptables in this image"},
	{exec.ErrItself, "restore iptables' own program there, or unmount what covers it"},
	{errOtherNetwork, program + " select nft or select legacy, if you know the backend"},
	{install.ErrProgram, "install the iptables package again, or give its program the name xtables-nft-multi or " +
		"xtables-legacy-multi"},
	{link.ErrForeign, "move that file away, or replace it with install --force"},
	{link.ErrRecord, "restart the container, which ends the record"},
	{link.ErrStraight, program + " install, unless an agent that enters Pods needs it as it is"},
	{link.ErrNotWrapped, program + " install, which makes the commands run the wrapper"},
	{link.ErrSingle, "make it a symlink to " + iptables.MultiCall("nft") + " or " + iptables.MultiCall("legacy") +
		", or set " + call.Variable},
	{unix.EROFS, "set " + call.Variable + " to nft or legacy in the environment of the container"},
	{fs.ErrPermission, "run as root"},
	{unix.EMFILE, "raise the limit on open files"},
	{unix.ENOTDIR, "use --dir with the directory of the iptables commands"},
	{fs.ErrNotExist, "use --dir with the directory of the iptables commands"},
}

func remedy(err error) string {
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return r.try
		}
	}
	return ""
}

// printError prints an error and what to do, and returns the exit status: 0 if err is nil.
func (s *session) printError(err error) int {
	if err == nil {
		return 0
	}
	f := failure{status: statusFailure, err: err}
	errors.As(err, &f)
	if f.err != nil {
		s.say("%v", err)
	}
	if f.try == "" {
		f.try = remedy(f.err)
	}
	if f.try != "" {
		s.say("try: %s", f.try)
	}
	return f.status
}

// say prints a line for people on stderr.
func (s *session) say(format string, args ...any) {
	_ = s.stdout.Flush() // the writer keeps the error
	fmt.Fprintf(s.stderr, "%s: %s\n", program, printable(fmt.Sprintf(format, args...)))
}

// print prints a line of a result on stdout. It is never broken: a terminal wraps it, and a pipe needs it whole.
func (s *session) print(format string, args ...any) {
	fmt.Fprintln(s.stdout, printable(fmt.Sprintf(format, args...)))
}

// table prints rows in columns, after an empty line. The first row is a heading. Without other rows, table prints
// nothing.
func (s *session) table(rows ...[]string) {
	if len(rows) < 2 {
		return
	}
	t := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t)
	for _, row := range rows {
		fmt.Fprintln(t, printable(strings.Join(row, "\t")))
	}
	t.Flush()
}

func (s *session) json(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	fmt.Fprintf(s.stdout, "%s\n", text)
	return err
}

// printable replaces unprintable characters by spaces, so that no name of a file or a chain can control the terminal.
// It keeps tabs, which separate the cells of a table.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) && c != '\t' {
			return ' '
		}
		return c
	}, text)
}
