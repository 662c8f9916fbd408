// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rules says how many rules are in a backend.
func (r Result) rules(backend Mode) string {
	v4, v6 := r.Of(backend, IPv4), r.Of(backend, IPv6)
	if v4.Estimate+v6.Estimate > 0 {
		return "about " + strconv.Itoa(r.likely(backend)) + " rules"
	}
	return v4.Rules.plus(v6.Rules).String()
}

// String returns the backend and the reason for it in a sentence for people.
func (r Result) String() string { return string(r.Mode) + ": " + r.Because() }

// Because returns the reason in a clause for people.
func (r Result) Because() string {
	switch r.Reason {
	case Override:
		return "the backend was set explicitly"
	case KubeletHint:
		return r.found(HintChain, hint)
	case KubeletCanary:
		return r.found(CanaryChain, canary)
	case Remembered:
		text := r.Remembered.because()
		if r.FromHome {
			text += ", in the network namespace of process 1"
		}
		return text
	case HostProgram:
		return r.program(r.Mode).in(r.Mode)
	case RuleCount:
		return "nft has " + r.rules(NFT) + " and legacy has " + r.rules(Legacy)
	case OnlySupported:
		if r.Mode == NFT {
			return "this kernel does not support legacy"
		}
		return cmp.Or(r.refused(), "this kernel does not support nft")
	case OnlyInstalled:
		return "only the " + string(r.Mode) + " programs are installed"
	case Default, "":
		return "no evidence was found, and nft is the default"
	default:
		return "for a reason that this version does not know, " + strconv.Quote(string(r.Reason))
	}
}

// found says in which family a chain is. A wrapped call remembers it, and without package fmt that costs eight page
// faults less.
func (r Result) found(chain string, in func(Evidence) bool) string {
	where := ""
	for _, f := range families {
		if in(r.Of(r.Mode, f)) {
			where += ", " + f.title()
		}
	}
	return "chain " + chain + " is in " + string(r.Mode) + "'s mangle table (" + strings.TrimPrefix(where, ", ") + ")"
}

// program is the program of the host that decides, or would. Programs that use iptables come before those that use
// nftables.
func (r Result) program(backend Mode) Program {
	all := slices.Concat(r.Of(backend, IPv4).Programs, r.Of(backend, IPv6).Programs)
	for _, p := range all {
		if p.Chain != "" {
			return p
		}
	}
	for _, p := range all {
		return p
	}
	return Program{Name: "a program of the host"}
}

// aboutPrograms says why what programs of the host show is not certain, "" if that is not the reason.
func (r Result) aboutPrograms() string {
	nft, legacy := Query{}.backends([4]Evidence{
		r.Of(NFT, IPv4), r.Of(NFT, IPv6), r.Of(Legacy, IPv4), r.Of(Legacy, IPv6),
	})
	switch {
	case r.Reason != HostProgram && r.Reason != RuleCount:
		return ""
	case nft.host() == Yes && legacy.host() == Yes:
		return r.program(NFT).in(NFT) + ", but " + r.program(Legacy).in(Legacy)
	case r.Mode == NFT && legacy.host() == Unknown:
		return "legacy's tables were not read, and a program of the host may have rules there"
	case r.Mode == Legacy && nft.host() == Unknown:
		return "nft's tables were not all read, and a program of the host may have rules there"
	case r.Reason == HostProgram && legacy.rules.Max > 0:
		return "legacy has rules too (" + r.rules(Legacy) + "), and no name tells who made them"
	}
	return ""
}

// refused says what nf_tables refused in a dry run, "" if nothing.
func (r Result) refused() string {
	for _, f := range families {
		for _, feature := range r.Of(NFT, f).Features {
			if feature.Has == No {
				return fmt.Sprintf("this kernel's nf_tables lacks what iptables-nft needs (%s %s: %s)",
					f.title(), strings.ReplaceAll(feature.Name, "-", " "), feature.Error)
			}
		}
	}
	return ""
}

func (f Family) title() string { return "IP" + strings.TrimPrefix(string(f), "ip") }

// Uncertainty says in one clause why the result is not conclusive, with what is missing where that is known. It is
// empty for a conclusive one.
func (r Result) Uncertainty() string {
	switch {
	case r.Conclusive:
		return ""
	case r.Caveat != "":
		return r.Caveat
	case r.Reason == Override:
		return "the backend was set explicitly, and evidence from the host was not used"
	case r.Reason != "" && !slices.Contains(Reasons(), r.Reason):
		return "this version does not know the reason " + strconv.Quote(string(r.Reason))
	}
	for _, e := range r.Evidence {
		if e.Error != "" {
			return fmt.Sprintf("could not inspect %s %s: %s%s", e.Backend, e.Family.title(), e.Error, missingFor(e.Err))
		}
	}
	switch {
	case r.FromHome:
		return "found no evidence in this network namespace; " +
			"what this container remembers is about another one, that of process 1"
	case r.Reason == Remembered:
		return "no kubelet chain was found, and what this container remembers is a guess"
	}
	if why := r.aboutPrograms(); why != "" {
		return why
	}
	for _, e := range r.Evidence {
		if len(e.Foreign) > 0 {
			c := e.Foreign[0]
			return fmt.Sprintf("nftables' table %q (%s) has chain %q, which is not iptables' own "+
				"or has rules that are not, so iptables might not use its rules", c.Table, e.Family.title(), c.Name)
		}
	}
	nft := r.Of(NFT, IPv4).Supported
	legacy := r.Of(Legacy, IPv4).Supported
	switch {
	case nft == No && legacy == No:
		return "this kernel has neither nf_tables nor x_tables, so iptables cannot work"
	case nft == No && legacy == Unknown:
		return "this kernel has no nf_tables, and x_tables is not loaded (a module may provide it)"
	}
	native := slices.Concat(r.Of(NFT, IPv4).Native, r.Of(NFT, IPv6).Native)
	slices.Sort(native)
	native = slices.Compact(native)
	if len(native) > 0 && r.likely(Legacy) == 0 {
		return fmt.Sprintf("found only tables of nftables that iptables does not use (%s); nothing speaks for legacy",
			quoted(native))
	}
	return "found neither a kubelet chain nor any rule in this network namespace, so the host's backend is unknown"
}

// quoted lists names, with quotes, because a name of nf_tables may have any byte in it.
func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strconv.Quote(name)
	}
	return strings.Join(all, ", ")
}
