// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// The codes. They are stable, and each is the heading of a paragraph in docs/troubleshooting.md.
const (
	notPermitted = "not-permitted"
	kernel       = "kernel"
	noProgram    = "no-program"
	wrongBackend = "wrong-backend"
	bothBackends = "both-backends"
	nftTable     = "nft-table"
	lock         = "lock"
	podNetwork   = "pod-network"
	uncertain    = "uncertain"
	notWrapped   = "not-wrapped"
	oldIptables  = "old-iptables"
)

// codes are in the order in which an operator should look at them: what keeps iptables from running at all comes first.
var codes = []struct {
	code string
	find func(*facts) *Finding
}{
	{notPermitted, (*facts).notPermitted},
	{kernel, (*facts).kernel},
	{noProgram, (*facts).noProgram},
	{wrongBackend, (*facts).wrongBackend},
	{bothBackends, (*facts).bothBackends},
	{nftTable, (*facts).nftTable},
	{lock, (*facts).lock},
	{podNetwork, (*facts).podNetwork},
	{uncertain, (*facts).uncertain},
	{notWrapped, (*facts).notWrapped},
	{oldIptables, (*facts).oldIptables},
}

// facts is all that the findings depend on.
type facts struct {
	Report
	place     Place
	variable  string // IPTABLES_WRAPPER_MODE
	process   process
	nat       evidence.Backend // what nft lacks for a call that adds to table nat
	keeping   string           // why nothing can be remembered, "" if it can
	missing   error            // why a call of the wanted backend finds no program
	printed   []start.Output   // by the commands that were run
	other     rules            // of the backend that is not wanted
	lockFault error
	unstarted []string // why a program was not started
}

// diagnose returns the findings, problems first.
func (f *facts) diagnose() []Finding {
	all := []Finding{}
	for _, c := range codes {
		found := c.find(f)
		if found != nil {
			found.Code = c.code
			found.More = "https://github.com/iptables-wrappers/iptables-wrappers/blob/main/docs/troubleshooting.md#" +
				c.code
			all = append(all, *found)
		}
	}
	// "problem" comes before "warning" in the alphabet, too.
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return all
}

// wanted is the backend that iptables should run: the host's where that is known, otherwise the one that runs here.
func (f *facts) wanted() evidence.Mode {
	now := f.Host.Now()
	if now.Conclusive {
		return now.Mode
	}
	return cmp.Or(f.Here.Backend, now.Mode)
}

// failed is the finding of the first message of a code that a command printed when it failed, nil if there is none.
func (f *facts) failed(code string) *Finding {
	for _, s := range f.Messages {
		if s.Failed && s.Code == code {
			return &Finding{
				Severity: problem,
				Text: "iptables fails here. " + s.message.says + " \"" + s.Command + "\" printed \"" +
					s.Line + "\".",
				Look: []string{s.Command},
				Do:   strings.ReplaceAll(s.message.do, "`", ""),
			}
		}
	}
	return nil
}

// dirFlag is what a command of the wrapper needs to be about a directory.
func dirFlag(directory string) string {
	if directory == layout.DefaultDirectory() {
		return ""
	}
	return " --dir " + directory
}

// List names at most eight: "a, b and 2,993 more".
func List(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + thousands(len(names)-most) + " more"
}

// thousands is a number for people: 2,993.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
