// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
	"slices"
	"strings"
)

// String returns the backend and the reason, in one line for people: "nft: chain KUBE-IPTABLES-HINT of kubelet is in
// nft's mangle table (IPv4)".
func (r Result) String() string { return string(r.Backend) + ": " + r.Because() }

// Because returns one line for people: why it is this backend, and why that is not certain.
func (r Result) Because() string {
	e := r.Evidence
	switch r.Reason {
	case KubeletHint, KubeletCanary, HostProgram:
		return r.byName()
	case Held:
		return r.byHolding()
	case OnlySupported:
		if e.NFT.Kernel == No {
			return "this kernel has no nf_tables"
		}
		return "this kernel's nf_tables lacks " + e.Lacks
	case RuleCount:
		return fmt.Sprintf("no chain or table of a known program was found; nft has %s, legacy %s%s", e.NFT.ruleCount(),
			e.Legacy.ruleCount(), e.unread())
	default:
		return "no chain or table of a known program was found, and no rule" + e.unread()
	}
}

// byName returns Because if a name decides.
func (r Result) byName() string {
	words := r.Evidence.Of(r.Backend).strongest().in(r.Backend)
	if r.Certain {
		return words
	}
	other := r.Backend.Other()
	name := r.Evidence.Of(other).strongest()
	if name != (Name{}) {
		words += ", but " + name.in(other)
	}
	return words + r.Evidence.unread()
}

// byHolding returns Because if the reason is Held: the row of the table that applied is only a guess.
func (r Result) byHolding() string {
	words := string(r.Backend) + " is in use here already, and no chain or table proves another backend"
	row := Decide(r.Evidence, "")
	switch row.Reason {
	case KubeletHint, KubeletCanary, HostProgram:
		return words + ": " + row.Because()
	}
	return words + r.Evidence.unread()
}

// strongest returns the first name that was found. Stronger kinds are asked for first, and IPv4 before IPv6.
func (f Findings) strongest() Name {
	if len(f.Names) == 0 {
		return Name{}
	}
	return f.Names[0]
}

// in describes where a name is.
func (n Name) in(b Backend) string {
	switch {
	case n == (Name{}):
		return "a name is in " + string(b)
	case n.Chain == "":
		return fmt.Sprintf("table %s of %s is in nf_tables", n.Table, n.Program)
	}
	return fmt.Sprintf("chain %s of %s is in %s's %s table (%s)", n.Chain, n.Program, b, n.Table, n.Family)
}

// ruleCount describes how many rules there are.
func (f Findings) ruleCount() string {
	switch {
	case f.Counted != Yes && f.Rules == 0:
		return "an unknown number of rules"
	case f.Counted != Yes && f.Rules == 1:
		return "at least 1 rule"
	case f.Counted != Yes:
		return fmt.Sprintf("at least %d rules", f.Rules)
	case f.Rules == 1:
		return "1 rule"
	}
	return fmt.Sprintf("%d rules", f.Rules)
}

// unread describes what could not be read, "" if nothing failed.
func (e Evidence) unread() string {
	words := ""
	for _, b := range Backends() {
		f := e.Of(b)
		answers := slices.Concat(f.Hint[:], f.Canary[:], f.Program[:])
		switch {
		case f.Err != nil: // errors.Join separates its parts by line ends
			words += fmt.Sprintf("; %s could not be read (%s)", b, strings.ReplaceAll(f.Err.Error(), "\n", "; "))
		case slices.Contains(answers, Unknown):
			words += fmt.Sprintf("; %s is too large to be read", b)
		}
	}
	return words
}
