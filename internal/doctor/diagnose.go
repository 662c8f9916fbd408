// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
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
	find func(*observation) *Finding
}{
	{notPermitted, (*observation).notPermitted},
	{kernel, (*observation).kernel},
	{noProgram, (*observation).noProgram},
	{wrongBackend, (*observation).wrongBackend},
	{bothBackends, (*observation).bothBackends},
	{nftTable, (*observation).nftTable},
	{oldIptables, (*observation).oldIptables},
	{lock, (*observation).lock},
	{notWrapped, (*observation).notWrapped},
	{uncertain, (*observation).uncertain},
}

// diagnose makes the findings, problems first. reference is the tag or the commit of the page that explains them.
func (o *observation) diagnose(reference string) {
	o.Findings = []Finding{}
	for _, c := range codes {
		found := c.find(o)
		if found != nil {
			found.Code = c.code
			found.More = "https://github.com/iptables-wrappers/iptables-wrappers/blob/" + reference +
				"/docs/troubleshooting.md#" + c.code
			o.Findings = append(o.Findings, *found)
		}
	}
	// "problem" comes before "warning" in the alphabet, too.
	slices.SortStableFunc(o.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
}

// found reports whether there is already a finding of a code.
func (o *observation) found(code string) bool {
	return slices.ContainsFunc(o.Findings, func(f Finding) bool { return f.Code == code })
}

// known reports whether the host uses its backend for certain, or cannot use another one.
func (o *observation) known() bool { return o.Host.Certain || o.Host.Reason == detect.OnlySupported }

// wanted is the backend that iptables should run: the host's where that is known, otherwise the one that runs here.
func (o *observation) wanted() detect.Backend {
	if o.known() {
		return o.Host.Backend
	}
	return cmp.Or(o.Here.Backend, o.Host.Backend)
}

// said returns the first message of a code that a command printed, nil if none did.
func (o *observation) said(code string) *Said {
	for i, s := range o.Messages {
		if s.Code == code {
			return &o.Messages[i]
		}
	}
	return nil
}

// finding is the one that a message stands for.
func (s *Said) finding() *Finding {
	if s == nil {
		return nil
	}
	return &Finding{
		Severity: problem,
		Text:     "iptables fails here. " + s.message.says + " " + s.quote(),
		Look:     []string{s.Command},
		Do:       s.message.do,
	}
}

// quote is a sentence that says what was printed.
func (s *Said) quote() string { return "\"" + s.Command + "\" printed \"" + s.Line + "\"." }
