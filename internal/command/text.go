// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// failure is the end of a command with a status. Without an error, the answer has said what there is to say.
type failure struct {
	status int
	err    error
	try    string // what the user can do
}

func (f failure) Error() string { return fmt.Sprint(f.err) }
func (f failure) Unwrap() error { return f.err }

// say prints a text for people. An error may join several, each on its own line.
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

// printable replaces what cannot be printed by spaces: no name of a file or a chain reaches the terminal as a command.
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
	f := failure{status: 1, err: err}
	errors.As(err, &f)
	if f.err != nil {
		s.say("%v", err)
	}
	if try := cmp.Or(f.try, remedy(f.err)); try != "" {
		s.say("try: %s", try)
	}
	return f.status
}

// remedies say what to do about an error for which the command says nothing of its own. The first that fits counts.
var remedies = []struct {
	err error
	try string
}{
	{layout.ErrNotInstalled, program + " install, which puts the wrapper in front of that iptables"},
	{layout.ErrForeign, program + " install --force, which replaces it"},
	{install.ErrExposed, "another directory, or --force"},
	{install.ErrAlternatives, "--alternatives=never, which creates plain symlinks"},
	{memory.ErrRoots, "run as root"},
	{fs.ErrPermission, "run as root"},
}

// unwritten is an answer that could not be written.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return failure{1, err, "again with a stdout that can be written"}
}

func remedy(err error) string {
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return r.try
		}
	}
	return ""
}
