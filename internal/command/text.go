// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

const multiCalls = "xtables-nft-multi or xtables-legacy-multi"

// remedies are what to do about errors. The first match wins.
var remedies = []struct {
	err error
	try string
}{
	{errNotCertain, program + " doctor, which prints what to do about it"},
	{errNotStored, "name the host's backend if you know it, or select without --strict"},
	{errOtherNetwork, program + " select nft or select legacy, if you know the backend"},
	{file.ErrExposed, "chown that directory to root, and chmod go-w it"},
	{exec.ErrMissing, "install that backend's iptables in this image"},
	{exec.ErrItself, "restore iptables' own program there, or unmount what covers it"},
	{install.ErrProgram, "install the iptables package again, or give its program the name " + multiCalls},
	{link.ErrForeign, "move that file away, or replace it with install --force"},
	{link.ErrNotWrapped, program + " install, unless an agent that enters Pods needs links straight to the wrapper"},
	{link.ErrSingle, "make it a symlink to " + multiCalls + ", or set " + call.Variable},
	{unix.EROFS, "set " + call.Variable + " to nft or legacy in the environment of the container"},
	{fs.ErrPermission, "run as root"},
	{unix.EMFILE, "raise the limit on open files"},
}

// printError prints an error and what to do, and returns the exit status: 0 if there is no error. An error without a
// text is only a status.
func printError(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if err.Error() != "" {
		say(stderr, "%s", strings.ReplaceAll(err.Error(), "\n", "; ")) // line ends are those of errors.Join
	}
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			say(stderr, "try: %s", r.try)
			break
		}
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

// keeper keeps the first error of writing: an answer that cannot be written is a failure.
type keeper struct {
	io.Writer
	err error
}

func (k *keeper) Write(p []byte) (int, error) {
	n, err := k.Writer.Write(p)
	k.err = cmp.Or(k.err, err)
	return n, err
}
