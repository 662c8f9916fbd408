// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"
	"strconv"
	"strings"
)

// because returns one line for people: why this backend, and why that is not certain. Without package fmt, a wrapped
// call has eight page faults less.
func because(r Result) string {
	e := r.Evidence
	switch r.Reason {
	case KubeletHint:
		return nameBecause(r, hints)
	case KubeletCanary:
		return nameBecause(r, canaries)
	case HostProgram:
		return nameBecause(r, programs)
	case OnlySupported:
		if e.NFT.Kernel == No {
			return "this kernel has no nf_tables"
		}
		return "this kernel's nf_tables lacks " + e.Lacks
	case RuleCount:
		return "no name was found; nft has " + e.NFT.count() + ", legacy " + e.Legacy.count() + e.unread()
	default:
		return "neither a name nor a rule was found" + e.unread()
	}
}

// heldBecause is because where the row that applied is a guess, and the caller holds a backend.
func heldBecause(held Backend, row Result) string {
	words := string(held) + " is in use here already, and no name proves another backend"
	switch row.Reason {
	case KubeletHint, KubeletCanary, HostProgram:
		return words + ": " + row.Because
	}
	return words + row.Evidence.unread()
}

// nameBecause is because for a name.
func nameBecause(r Result, k kind) string {
	words := r.Evidence.Of(r.Backend).first(k).in(r.Backend)
	if r.Certain {
		return words
	}
	other := r.Evidence.Of(r.Backend.Other())
	for stronger := hints; stronger <= k; stronger++ {
		name := other.first(stronger)
		if name != (Name{}) {
			return words + ", but " + name.in(r.Backend.Other())
		}
	}
	return words + r.Evidence.unread()
}

// kindOf returns the kind of a name.
func (n Name) kindOf() kind {
	switch n.Chain {
	case hintChain:
		return hints
	case canaryChain:
		return canaries
	default:
		return programs
	}
}

// first returns the first name of a kind that was found.
func (f Findings) first(k kind) Name {
	for _, n := range f.Names {
		if n.kindOf() == k {
			return n
		}
	}
	return Name{}
}

// in says where a name is.
func (n Name) in(b Backend) string {
	if n.Chain == "" {
		return "table " + n.Table + " of " + n.Program + " is in nf_tables"
	}
	return "chain " + n.Chain + " of " + n.Program + " is in " + string(b) + "'s " + n.Table + " table (" +
		n.Family.String() + ")"
}

// count says how many rules there are.
func (f Findings) count() string {
	words := strconv.Itoa(f.Rules)
	switch {
	case f.Counted != Yes && f.Rules == 0:
		return "an unknown number of rules"
	case f.Counted != Yes:
		words = "at least " + words
	}
	if f.Rules == 1 {
		return words + " rule"
	}
	return words + " rules"
}

// unread says what could not be read, "" if all that was asked was.
func (e Evidence) unread() string {
	var parts []string
	for _, b := range [...]Backend{NFT, Legacy} {
		f := e.Of(b)
		switch {
		case f.Err != nil:
			// One line: errors.Join separates its parts by line ends.
			parts = append(parts, string(b)+" could not be read ("+strings.ReplaceAll(f.Err.Error(), "\n", "; ")+")")
		case f.hasUnknown():
			parts = append(parts, string(b)+" is too large to be read")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// hasUnknown reports whether a question about names has no answer.
func (f Findings) hasUnknown() bool {
	for k := hints; k <= programs; k++ {
		if slices.Contains(f.names(k)[:], Unknown) {
			return true
		}
	}
	return false
}
