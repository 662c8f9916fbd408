// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// printError prints an error and what to do, and returns the exit status: 0 if there is no error. An error without a
// text is only a status.
func printError(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if err.Error() != "" {
		say(stderr, "%s", strings.ReplaceAll(err.Error(), "\n", "; ")) // line ends are those of errors.Join
	}
	_, try := remedy.For(err)
	if try != "" {
		say(stderr, "try: %s", try)
	}
	var exit cli.ExitCoder
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return statusFailure
}

func say(stderr io.Writer, format string, args ...any) {
	printLine(stderr, program+": "+format, args...)
}

// printLine prints one line. It is never broken: a terminal wraps it, and a pipe needs it whole. Unprintable characters
// become spaces, so that no name of a file or a chain can control the terminal. Tabs separate the cells of a table.
func printLine(w io.Writer, format string, args ...any) {
	line := strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) && c != '\t' {
			return ' '
		}
		return c
	}, fmt.Sprintf(format, args...))
	fmt.Fprintln(w, line)
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// checkedWriter has the first error of writing: an answer that cannot be written is a failure.
type checkedWriter struct {
	io.Writer
	err error
}

// Write writes as the Writer does.
func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.err = cmp.Or(w.err, fmt.Errorf("%w: %w", remedy.ErrOutput, err))
	}
	return n, err
}
