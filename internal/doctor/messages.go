// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	osexec "os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// Instead of a code:
const (
	unread      = "unread"      // it was not started, or may not read the list of legacy's tables: other calls may work
	endless     = "endless"     // it did not end
	unexplained = "unexplained" // it failed, and no message says why
	nftChains   = "nft-chains"  // it worked, but did not list some base chains
)

// messages are what iptables prints, and the code of the finding that quotes it. What each means is in the list of
// messages in docs/troubleshooting.md, with many others.
var messages = []struct{ text, code string }{
	{text: "/net/ip_tables_names", code: unread},
	{text: "/net/ip6_tables_names", code: unread},
	{text: "Could not fetch rule set generation id: Permission denied", code: notPermitted},
	{text: "Failed to initialize nft: Permission denied", code: notPermitted},
	{text: "Failed to initialize nft: Operation not permitted", code: notPermitted},
	{text: "Permission denied (you must be root)", code: notPermitted},
	{text: "Could not fetch rule set generation id: Invalid argument", code: kernel},
	{text: "Failed to initialize nft: Protocol not supported", code: kernel},
	{text: "Table does not exist (do you need to insmod?)", code: kernel},
	{text: "tables who? (do you need to insmod?)", code: kernel},
	{text: "missing kernel module?", code: kernel},
	{text: "extension not found", code: noProgram},
	{text: "Can't find library for ", code: noProgram},
	{text: "Couldn't load ", code: noProgram},
	{text: "error while loading shared libraries", code: noProgram},
	{text: "symbol lookup error", code: noProgram},
	{text: "Error loading shared library", code: noProgram}, // musl's, as the next one
	{text: "Error relocating", code: noProgram},
	{text: " is incompatible, use 'nft' tool", code: nftTable},
	{text: "Parsing nftables rule failed", code: nftTable},
	{text: " contains incompatible base-chains, use 'nft' tool", code: nftChains},
}

// find returns the code of the first line that has a message, and the line. If there are codes, only these count.
func find(lines []string, codes ...string) (code, line string) {
	for _, line := range lines {
		for _, m := range messages {
			if strings.Contains(line, m.text) && (len(codes) == 0 || slices.Contains(codes, m.code)) {
				return m.code, line
			}
		}
	}
	return "", ""
}

// aboutTable is how lines begin that iptables-save prints among the rules, and what they are. Rules contain other
// people's words. These are quoted so that no line of them is one of these: with a backslash before each apostrophe.
const aboutTable = "# Table `"

var isAboutTable = regexp.MustCompile("^" + aboutTable + "[a-z]+' (is|contains) incompatible.*, use 'nft' tool")

// called is a call of one of the six commands, and what it showed.
type called struct {
	run.Output
	backend detect.Backend
	code    string // of the finding, "" if it worked
	line    string // that it printed, and that shows it
}

// judge reads what a call printed.
func judge(b detect.Backend, out run.Output) called {
	c := called{Output: out, backend: b}
	isOther := func(line string) bool { return !isAboutTable.MatchString(line) }
	printed := lines(out.Stderr)
	all := slices.Concat(printed, slices.DeleteFunc(lines(strings.Join(out.Kept, "\n")), isOther))
	var exit *osexec.ExitError
	switch {
	case out.Err == nil:
		c.code, c.line = find(all, nftTable)
		if c.code == "" {
			c.code, c.line = find(all, nftChains)
		}
	case errors.Is(out.Err, run.ErrNotStarted):
		c.code = unread
	case errors.Is(out.Err, run.ErrEndless):
		c.code = endless
	case !errors.As(out.Err, &exit):
		c.code = noProgram
	default:
		c.code, c.line = find(all)
		if c.code == "" || c.code == nftChains {
			c.code = unexplained
			c.line = strings.Join(printed[:min(1, len(printed))], "") // the first line, if there is one
		}
	}
	return c
}

// worked reports whether a call ended with status 0, and failed whether one shows that calls fail.
func (c called) worked() bool { return c.Err == nil }
func (c called) failed() bool { return !c.worked() && c.code != unread }

// started reports whether the program ran, and was not ended by a signal.
func (c called) started() bool {
	var exit *osexec.ExitError
	isExit := errors.As(c.Err, &exit)
	return c.worked() || isExit && exit.Exited() && c.code != noProgram
}

// String is a clause that quotes the call: "iptables-save" fails with status 1: "...".
func (c called) String() string {
	const room = 300
	did, between := fmt.Sprintf("cannot be started: %v", c.Err), ": "
	var exit *osexec.ExitError
	isExit := errors.As(c.Err, &exit)
	switch {
	case c.worked():
		did, between = "prints", " "
	case c.code == endless:
		did = fmt.Sprintf("did not end in %v, and used %.2f s of processor time", run.Limit, c.Used.Seconds())
	case isExit && exit.Exited():
		did = fmt.Sprintf("fails with status %d", exit.ExitCode())
	case isExit:
		did = "was ended by " + unix.SignalName(exit.Sys().(syscall.WaitStatus).Signal())
	}
	if c.line != "" {
		did += between + strconv.Quote(cut(c.line, room))
	}
	return fmt.Sprintf("%q %s", c.Command, did)
}

// anyCommand matches one of the six, or a program of iptables.
var anyCommand = regexp.MustCompile(`\bip6?tables(-nft|-legacy)?(-save|-restore)?\b`)

// isLike reports whether two calls failed with the same error, but for the name of the command.
func (c called) isLike(other called) bool {
	same := func(c called) string {
		return anyCommand.ReplaceAllString(strings.TrimPrefix(c.String(), strconv.Quote(c.Command)), "iptables")
	}
	return same(c) == same(other)
}

// with returns the first call with a code, and the commands of the others that failed so.
func (s *state) with(code string) (first called, others []string) {
	all := filter(s.calls, func(c called) bool { return c.code == code })
	if len(all) == 0 {
		return called{}, nil
	}
	alike := filter(all[1:], all[0].isLike)
	return all[0], each(alike, func(c called) string { return c.Command })
}
