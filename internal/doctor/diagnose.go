// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// The codes. They are stable, and each is the heading of a paragraph in docs/troubleshooting.md.
const (
	notPermitted = "not-permitted"
	kernel       = "kernel"
	noProgram    = "no-program"
	wrongBackend = "wrong-backend"
	bothBackends = "both-backends"
	nftTable     = "nft-table"
	oldIptables  = "old-iptables"
	lock         = "lock"
	notWrapped   = "not-wrapped"
	uncertain    = "uncertain"
)

// codes are in the order in which an operator should look at them: what keeps iptables from running at all comes first.
var codes = []struct {
	code string
	find func(*state) *Finding
}{
	{notPermitted, (*state).notPermitted},
	{kernel, (*state).kernel},
	{noProgram, (*state).noProgram},
	{wrongBackend, (*state).wrongBackend},
	{bothBackends, (*state).bothBackends},
	{nftTable, (*state).nftTable},
	{oldIptables, (*state).oldIptables},
	{lock, (*state).lock},
	{notWrapped, (*state).notWrapped},
	{uncertain, (*state).uncertain},
}

// diagnose makes the findings, problems first. reference is the tag or the commit of the page that explains them.
func (s *state) diagnose(reference string) []Finding {
	s.findings = []Finding{}
	for _, c := range codes {
		found := c.find(s)
		if found != nil {
			found.Code = c.code
			found.More = "https://github.com/iptables-wrappers/iptables-wrappers/blob/" + reference +
				"/docs/troubleshooting.md#" + c.code
			s.findings = append(s.findings, *found)
		}
	}
	// "problem" comes before "warning" in the alphabet, too.
	slices.SortStableFunc(s.findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return s.findings
}

// has reports whether there is already a finding of a code.
func (s *state) has(code string) bool {
	return slices.ContainsFunc(s.findings, func(f Finding) bool { return f.Code == code })
}

// try is a sentence with what to do about errors that come together, as a failing call or command prints it.
func try(errs ...error) string {
	_, text := remedy.For(errors.Join(errs...))
	text = cmp.Or(text, remedy.Unknown)
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
