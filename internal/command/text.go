// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
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
	err, called := fmt.Errorf(format, args...), program
	if name := c.Command.Name; name != program {
		err, called = fmt.Errorf("%s: %w", name, err), program+" "+name
	}
	return failure{2, err, "see " + called + " --help"}
}

// say prints a text for people. An error may join several: a line each.
func (s *session) say(format string, args ...any) {
	s.stdout.Flush()
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintf(s.stderr, "%s: %s\n", program, strings.TrimSpace(printable(line)))
	}
}

// paragraph prints a label and a text on one line, which a terminal wraps by itself, and which stays whole in a pipe.
func (s *session) paragraph(label, text string) {
	fmt.Fprintln(s.stdout, label+strings.Join(strings.Fields(printable(text)), " "))
}

// printable has a space for what is none: not even a name of the system reaches the terminal as a command.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) && c != '\t' {
			return ' '
		}
		return c
	}, text)
}

// table prints rows in columns. Tabs separate the cells, and the first row is a heading.
func (s *session) table(rows ...string) {
	t := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t)
	for _, row := range rows {
		fmt.Fprintln(t, printable(row))
	}
	t.Flush()
}

func (s *session) json(value any) {
	text, _ := json.MarshalIndent(value, "", "  ")
	fmt.Fprintf(s.stdout, "%s\n", text)
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
			f.hint = cmp.Or(f.hint, h.hint)
		}
	}
	if f.hint != "" {
		s.say("hint: %s", f.hint)
	}
	return f.status
}

// hints say what to do about an error for which the command has no hint of its own.
var hints = []failure{
	{1, layout.ErrNotInstalled, "to put the wrapper in front of that iptables, run: iptables-wrapper install"},
	{1, layout.ErrForeign, "to replace it, run: iptables-wrapper install --force"},
	{1, install.ErrExposed, "choose another directory, or use --force"},
	{1, install.ErrAlternatives, "to create plain symlinks instead, use --alternatives=never"},
	{1, fs.ErrPermission, "run as root"},
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
	_, nearest, _ := strings.Cut(cli.SuggestCommand(app.Commands, typed), `"`) // Did you mean "detect"?
	return failure{2, fmt.Errorf("unknown command %q%s", typed, didYouMean(typed, strings.TrimSuffix(nearest, `"?`))), seeHelp}
}

// wrongFlag keeps the library from printing help on stdout, and restores the dash that the library drops from a flag.
func wrongFlag(c *cli.Context, err error, _ bool) error {
	_, name, unknown := strings.Cut(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return usagef(c, "%v", err)
	}
	return usagef(c, "unknown flag %q%s", "--"[:min(2, len(name))]+name, didYouMean(name, cli.SuggestFlag(c.Command.Flags, name, false)))
}

// didYouMean suggests what the library takes for the nearest. It always finds something, so the first letter must be right.
func didYouMean(typed, nearest string) string {
	if word := strings.Trim(nearest, "-"); word != "" && strings.HasPrefix(typed, word[:1]) {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return ""
}

// checked is a flag whose value must be one of some words or, if there are none, a path.
func checked(f *cli.StringFlag, words ...string) cli.Flag {
	f.Action = func(c *cli.Context, value string) error {
		switch {
		case len(words) > 0 && !slices.Contains(words, value):
			return usagef(c, "--%s %q is not one of %s", f.Name, value, strings.Join(words, ", "))
		case value == "":
			return usagef(c, "--%s needs a path", f.Name)
		}
		return nil
	}
	return f
}

func dirFlag() cli.Flag {
	return checked(&cli.StringFlag{Name: "dir", Usage: "`DIR` that holds the iptables commands (default:\n\t" +
		"the wrapper's own if iptables is there, else\n\tthe first standard one that has it)"})
}

func boolFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

// waitFlags are --wait and what it waits for.
func waitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{
			Name: "wait", DefaultText: "do not wait", Usage: "wait for a certain answer, up to `DURATION`,\n\tsuch as 90s or 5m",
			Action: func(c *cli.Context, limit time.Duration) error {
				if limit <= 0 {
					return usagef(c, "--wait must be a positive duration such as 90s or 5m, not %s", limit)
				}
				return nil
			},
		},
		checked(&cli.StringFlag{Name: "for", Value: "any", Usage: "what --wait waits for: `EVIDENCE` is kubelet\n\t" +
			"(its chains alone) or any"}, "any", "kubelet"),
	}
}

// waitFor is what --for says.
func waitFor(c *cli.Context) detect.WaitFor {
	return map[string]detect.WaitFor{"any": detect.ForAny, "kubelet": detect.ForKubelet}[c.String("for")]
}
