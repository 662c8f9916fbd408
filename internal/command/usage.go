// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// failure is the end of a command with a status. Without an error, the answer has said what there is to say.
type failure struct {
	status int
	err    error
	hint   string
}

func (f failure) Error() string { return fmt.Sprint(f.err) }
func (f failure) Unwrap() error { return f.err }

const seeHelp = "see " + program + " --help"

// usagef is wrong usage of a command, or of the program itself.
func usagef(c *cli.Context, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if c.Command.Name != program {
		err = fmt.Errorf("%s: %w", c.Command.Name, err)
	}
	return failure{2, err, "see " + c.Command.HelpName + " --help"}
}

// say prints a text for people. An error may join several: a line each.
func (s *session) say(format string, args ...any) {
	s.stdout.Flush()
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintf(s.stderr, "%s: %s\n", program, strings.TrimSpace(printable(line)))
	}
}

// printError prints what went wrong, if anything did, and what to do, and returns the exit status.
func (s *session) printError(err error) int {
	if err == nil {
		return 0
	}
	f := failure{1, err, ""}
	errors.As(err, &f)
	if f.err != nil {
		s.say("%v", err)
	}
	for _, h := range hints {
		if errors.Is(f.err, h.err) {
			f.hint = cmp.Or(f.hint, h.text)
		}
	}
	if f.hint != "" {
		s.say("hint: %s", f.hint)
	}
	return f.status
}

// hints say what to do about an error for which the command has no hint of its own.
var hints = []struct {
	err  error
	text string
}{
	{layout.ErrNotInstalled, "to put the wrapper in front of that iptables, run: iptables-wrapper install"},
	{layout.ErrForeign, "to replace it, run: iptables-wrapper install --force"},
	{install.ErrExposed, "choose another directory, or use --force"},
	{install.ErrAlternatives, "to create plain symlinks instead, use --alternatives=never"},
	{unix.EACCES, "run as root"},
	{unix.EPERM, "run as root"},
}

// refuseSurplus refuses more arguments than the command has, which the library ignores.
func refuseSurplus(c *cli.Context) error {
	most := min(1, len(c.Command.ArgsUsage))
	if c.Args().Len() > most {
		return usagef(c, "unexpected argument %q", c.Args().Get(most))
	}
	return nil
}

func unknownCommand(typed string) error {
	return failure{2, fmt.Errorf("unknown command %q", typed), seeHelp}
}

// wrongFlag keeps the library from printing help on stdout.
func wrongFlag(c *cli.Context, err error, _ bool) error { return usagef(c, "%v", err) }
