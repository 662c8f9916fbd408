// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
	"slices"
	"strconv"
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
		return r.becauseOfMarker()
	case Held:
		words := string(r.Backend) + " is in use here already, and no chain or table proves another backend"
		row := Decide(e, "")
		if slices.Contains(byMarker[:], row.Reason) {
			return words + ": " + row.Because()
		}
		return words + e.unread()
	case OnlySupported:
		switch {
		case r.Backend == NFT:
			return "no chain or table of a known program was found; x_tables is not loaded, and cannot be loaded here" +
				e.unread()
		case e.NFT.Kernel == No:
			return "this kernel has no nf_tables"
		}
		return "this kernel's nf_tables lacks " + e.Lacks
	case RuleCount:
		return fmt.Sprintf("no chain or table of a known program was found; rules: nft %s, legacy %s%s",
			e.Number(NFT), e.Number(Legacy), e.unread())
	default:
		return "no chain or table of a known program was found, and no rule" + e.unread()
	}
}

func (r Result) becauseOfMarker() string {
	words := r.Evidence.describe(r.Backend)
	if r.Certain {
		return words
	}
	other := r.Evidence.describe(r.Backend.Other())
	if other != "" {
		words += ", but " + other
	}
	return words + r.Evidence.unread()
}

// describe describes the first marker that was found in a backend, "" if there is none. Stronger markers are asked for
// first, and IPv4 before IPv6.
func (e Evidence) describe(b Backend) string {
	markers := e.Of(b).Markers
	if len(markers) == 0 {
		return ""
	}
	m := markers[0]
	if m.Chain == "" {
		return fmt.Sprintf("table %s of %s is in nf_tables", m.Table, m.Program)
	}
	return fmt.Sprintf("chain %s of %s is in %s's %s table (%s)", m.Chain, m.Program, b, m.Table, m.Family)
}

// Number returns the number of a backend's rules for people: "12", "at least 12", "at most 12" if a table of legacy was
// too large to be read, or "12 of those that were read".
func (e Evidence) Number(b Backend) string {
	f := e.Of(b)
	number := strconv.Itoa(f.Rules)
	switch {
	case f.Counted == Yes:
		return number
	case f.Counted == No:
		return "at least " + number
	case b == Legacy && f.Err == nil:
		return "at most " + number
	}
	return number + " of those that were read"
}

// unread describes what could not be read, "" if nothing failed.
func (e Evidence) unread() string {
	words := ""
	for _, b := range Backends() {
		f := e.Of(b)
		answers := slices.Concat(f.Hint[:], f.Canary[:], f.Program[:])
		switch {
		case f.Err != nil: // errors.Join puts each error on a line of its own
			words += fmt.Sprintf("; %s could not be read (%s)", b, strings.ReplaceAll(f.Err.Error(), "\n", "; "))
		case slices.Contains(answers, Unknown):
			words += fmt.Sprintf("; %s is too large to be read", b)
		}
	}
	return words
}
