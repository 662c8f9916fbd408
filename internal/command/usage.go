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

func (s *session) say(format string, args ...any) {
	// An error may join several: a line each.
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n"+program+": ")
	fmt.Fprintf(s.stderr, "%s: %s\n", program, text)
}

// printError prints what went wrong and what to do, and returns the exit status.
func (s *session) printError(err error) int {
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

func unknownCommand(app *cli.App, typed string) error {
	var names []string
	for _, c := range app.Commands {
		names = append(names, c.Name)
	}
	return failure{2, fmt.Errorf("unknown command %q%s", typed, didYouMean(typed, names)), seeHelp}
}

// explain rewrites the library's errors about flags: it names neither the command nor a value that would do, and has lost a
// dash.
func (s *session) explain(c *cli.Context, err error, _ bool) error {
	problem, name, _ := strings.Cut(err.Error(), ": -")
	typed := "-" + name
	for _, arg := range s.args {
		if arg, _, _ = strings.Cut(arg, "="); arg == "--"+name {
			typed = arg
		}
	}
	switch problem {
	case "flag provided but not defined":
		var flags []string
		for _, f := range c.Command.Flags {
			flags = append(flags, "--"+f.Names()[0])
		}
		return usagef(c, "unknown flag %q%s", typed, didYouMean("--"+name, flags))
	case "flag needs an argument":
		return usagef(c, "%s needs a value; example: %[1]s %s", typed, examples[name])
	}
	if _, name, ok := strings.Cut(err.Error(), " for -"); ok { // "invalid boolean value"
		name, _, _ = strings.Cut(name, ":")
		return usagef(c, "--%s takes no value", name)
	}
	return usagef(c, "%v", err)
}

// didYouMean suggests the word that was probably meant. The library always finds one, as "install" for "status".
func didYouMean(typed string, words []string) string {
	best, least := "", min(3, (len(typed)+1)/2)
	for _, word := range words {
		if n := typos(typed, word); n < least {
			best, least = word, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// typos is how many bytes must be added, removed or changed to make one word of the other: their Levenshtein distance.
func typos(a, b string) int {
	row := make([]int, len(b)+1) // for as much of a as was seen, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
