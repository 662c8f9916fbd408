// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// String returns the backend and the reason for it: "nft: chain KUBE-IPTABLES-HINT is in nft's mangle table (IPv4,
// IPv6)".
func (d Decision) String() string { return string(d.Mode) + ": " + d.Because }

// because returns one clause for people. A wrapped call stores it. Without package fmt, that takes eight page faults
// less.
func (q Query) because(d Decision, nft, legacy Backend) string {
	own := nft
	if d.Mode == Legacy {
		own = legacy
	}
	switch d.Reason {
	case Override:
		return "the backend was set explicitly"
	case KubeletHint:
		return inMangle(d.Mode, HintChain, own, hasHint)
	case KubeletCanary:
		return inMangle(d.Mode, CanaryChain, own, hasCanary)
	case Remembered:
		return short(q.rememberedWords())
	case HostProgram:
		return short(programOf(own).in(d.Mode))
	case RuleCount:
		other := together(nft).has[rulesKind]
		if d.Mode == NFT {
			other = together(legacy).has[rulesKind]
		}
		return ruleWords(d.Mode, other)
	case OnlySupported:
		if d.Mode == Legacy && lacksWords(nft) != "" {
			return "this kernel's nf_tables lacks " + lacksWords(nft)
		}
		return "this kernel does not support " + string(d.Mode.Other())
	case NeitherWorks:
		return neitherWords(nft)
	case OnlyInstalled:
		return "only the " + string(d.Mode) + " programs are installed"
	default:
		native := slices.Compact(slices.Sorted(slices.Values(slices.Concat(nft[IPv4].Native, nft[IPv6].Native))))
		if len(native) > 0 {
			return short("only nftables' own tables (" + names(native) + ") were found, and nft is the default")
		}
		if unread(nft) || unread(legacy) {
			return "not everything could be read, and nft is the default"
		}
		return "no evidence was found, and nft is the default"
	}
}

// unread reports that a question about a backend failed.
func unread(b Backend) bool { return b[IPv4].Err != nil || b[IPv6].Err != nil }

func (q Query) rememberedWords() string {
	words := "remembered"
	if !q.Remembered.Conclusive {
		words += " as a guess"
	}
	if q.Remembered.Because != "" {
		words += ": " + q.Remembered.Because
	}
	return words
}

func ruleWords(m Mode, other Answer) string {
	switch {
	case other == No:
		return "only " + string(m) + " has rules"
	case other == Unknown:
		return string(m) + " has rules, and whether " + string(m.Other()) + " has any is not known"
	case m == NFT:
		return "both backends have rules, and nft has at least as many as legacy"
	default:
		return "both backends have rules, and legacy has more"
	}
}

func lacksWords(nft Backend) string {
	if nft[IPv4].Lacks != "" {
		return nft[IPv4].Lacks
	}
	return nft[IPv6].Lacks
}

// neitherWords also names the cure for the kernel that is known to be like this: RHEL 10 without its extra modules.
func neitherWords(nft Backend) string {
	missing := "this kernel has no nf_tables"
	if lacks := lacksWords(nft); lacks != "" {
		missing = "this kernel's nf_tables lacks " + lacks
	}
	return missing + ", and there is no ip_tables for legacy: on RHEL 10, install kernel-modules-extra on the node"
}

// inMangle says in which families a chain is.
func inMangle(m Mode, chain string, b Backend, has func(About) Answer) string {
	return "chain " + chain + " is in " + string(m) + "'s mangle table (" + inFamilies(b, has) + ")"
}

// programOf returns the program of the host that decides. One that uses iptables counts before one that uses nftables.
func programOf(b Backend) Program {
	all := slices.Concat(b[IPv4].Programs, b[IPv6].Programs)
	if i := slices.IndexFunc(all, func(p Program) bool { return p.Chain != "" }); i >= 0 {
		return all[i]
	}
	if len(all) > 0 {
		return all[0]
	}
	return Program{Name: "a program of the host", Table: "unknown"}
}

// names lists the first two names, and says how many more there are.
func names(all []string) string {
	if more := len(all) - 2; more > 0 {
		return strings.Join(all[:2], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(all, ", ")
}

// short makes a clause printable and short enough to be stored, whatever bytes a name has in it.
func short(clause string) string {
	const most = 190
	var b strings.Builder
	for _, r := range clause {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			r = '?'
		}
		if b.Len()+len(string(r)) > most {
			b.WriteString("...")
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Conflict says in one clause that kubelet's chains are in both backends, "" if that is not known.
func (r Result) Conflict() string {
	for _, chain := range []struct {
		name string
		has  func(About) Answer
	}{
		{name: HintChain, has: hasHint},
		{name: CanaryChain, has: hasCanary},
	} {
		nft, legacy := inFamilies(r.NFT, chain.has), inFamilies(r.Legacy, chain.has)
		switch {
		case nft == "" || legacy == "":
		case nft != legacy && !strings.Contains(nft, legacy) && !strings.Contains(legacy, nft):
			return "the families differ: chain " + chain.name + " is in nft (" + nft + ") and in legacy (" +
				legacy + ")"
		default:
			return "chain " + chain.name + " is in both backends: the host changed its backend without a reboot, " +
				"or two kubelets use different ones"
		}
	}
	for _, m := range Modes() {
		former := r.Of(m.Other())
		if inFamilies(r.Of(m), hasHint) != "" && inFamilies(former, hasHint) == "" &&
			inFamilies(former, hasCanary) != "" {
			return "chain " + CanaryChain + " is left over in " + string(m.Other()) +
				": the host changed its backend without a reboot"
		}
	}
	return ""
}

// inFamilies lists the families that have something, "" if none is known to.
func inFamilies(b Backend, has func(About) Answer) string {
	var in []string
	for _, f := range families {
		if has(b[f]) == Yes {
			in = append(in, f.String())
		}
	}
	return strings.Join(in, ", ")
}

// Uncertainty says in one clause why the answer is not certain, and what the process lacks if that is known; "" if it
// is certain.
func (r Result) Uncertainty() string {
	nft, legacy := together(r.NFT), together(r.Legacy)
	switch {
	case r.Conclusive:
		return ""
	case r.Reason == Override:
		return "the backend was set explicitly, and the host was not asked"
	}
	for _, err := range r.errs() {
		if err != nil {
			return "could not ask everything: " + err.Error() + missingFor(err)
		}
	}
	switch {
	case r.Reason.Kubelet():
		return r.Conflict()
	case r.Reason == Remembered:
		return "no kubelet chain was found, and what this container remembers proves nothing about the host"
	case nft.has[hostKind] == Yes && legacy.has[hostKind] == Yes:
		return programOf(r.NFT).in(NFT) + ", but " + programOf(r.Legacy).in(Legacy)
	case r.Reason == HostProgram:
		return "legacy has rules too, and no name tells who made them"
	case nft.has[rulesKind] == Yes && legacy.has[rulesKind] == Yes:
		return "both backends have rules, and no name tells who made them"
	}
	for _, f := range families {
		for _, c := range r.NFT[f].Foreign {
			return "nftables' table " + strconv.Quote(c.Table) + " (" + f.String() + ") has chain " +
				strconv.Quote(c.Name) + ", which is not iptables' own or has rules that are not"
		}
	}
	switch {
	case r.Reason == NeitherWorks:
		return "iptables cannot work here"
	case r.Reason == OnlySupported && r.Mode == Legacy && r.Legacy[IPv4].Lacks != "":
		return "this kernel has no nf_tables, and ip_tables is neither loaded nor a module here: iptables cannot work"
	case r.Reason == OnlySupported && r.Mode == Legacy && r.Legacy[IPv4].Works == Unknown:
		return "x_tables is not loaded, and whether a module provides it is not known"
	default:
		return "found neither a kubelet chain nor any rule in this network namespace, so the host's backend is unknown"
	}
}
