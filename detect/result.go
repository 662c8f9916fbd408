// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Result is a decision with all that it rests on. Its JSON form is defined by docs/detect.schema.json.
type Result struct {
	Version    int        `json:"version"` // goes up when something in the schema changes its meaning or goes away
	Mode       Mode       `json:"mode"`
	Reason     Reason     `json:"reason"`
	Conclusive bool       `json:"conclusive"`           // nothing that could not be read could overturn Mode
	Remembered *Memory    `json:"remembered,omitempty"` // if that is the Reason
	Evidence   []Evidence `json:"evidence"`             // find one with Of
	Conflicts  []Conflict `json:"conflicts"`            // as far as both backends were asked

	guessed      string // Query.Guessed, or where Doubt has it from
	doubted      bool   // it would be conclusive if nobody had guessed
	fromHome     bool   // Remembered is Query.Home
	now          string // what speaks against what is remembered
	unprivileged bool   // the kernel answered each question that needs CAP_NET_ADMIN with EPERM
}

// Doubt returns a conclusive count as a guess, because it shows somewhere that somebody in this network namespace has acted on a
// guess: rules that a guess wrote are not evidence. "" stands for nowhere. Other results stay as they are.
func (r Result) Doubt(where string) Result {
	if where == "" || r.Reason != RuleCount || !r.Conclusive {
		return r
	}
	r.Conclusive = false
	r.guessed = where
	r.doubted = true
	return r
}

// Contradicted returns what is remembered as a guess, because a conclusive result about the host of now says otherwise. The
// container goes on with what it remembers. Other results stay as they are.
func (r Result) Contradicted(now Result) Result {
	if r.Reason != Remembered || !now.Conclusive || now.Mode == r.Mode {
		return r
	}
	r.Conclusive = false
	r.now = now.Because()
	return r
}

// Doubted reports that the result would be conclusive if nobody had acted on a guess. It is worth remembering all the same: otherwise
// whoever leaves the sign of a guess could keep others from remembering anything.
func (r Result) Doubted() bool { return r.doubted }

// Unbounded is the Max of a Count whose upper bound is not known.
const Unbounded = int(^uint(0) >> 1)

// Count is a number of rules: at least Min, at most Max, exact if they are equal.
type Count struct{ Min, Max int }

func exactly(n int) Count { return Count{n, n} }

func (c Count) plus(d Count) Count {
	if c.Max == Unbounded || d.Max == Unbounded {
		return Count{c.Min + d.Min, Unbounded}
	}
	return Count{c.Min + d.Min, c.Max + d.Max}
}

// MarshalJSON returns {"min": 1, "max": 3}, without max if that is not known.
func (c Count) MarshalJSON() ([]byte, error) {
	if c.Max == Unbounded {
		return fmt.Appendf(nil, `{"min":%d}`, c.Min), nil
	}
	return fmt.Appendf(nil, `{"min":%d,"max":%d}`, c.Min, c.Max), nil
}

// String returns for example "no rules", "1 rule", "at least 2 rules", "at most 3 rules", "2 to 3 rules".
func (c Count) String() string {
	number := strconv.Itoa(c.Max)
	switch {
	case c == exactly(0):
		number = "no"
	case c == Count{0, Unbounded}:
		return "an unknown number of rules"
	case c.Max == Unbounded:
		number = "at least " + strconv.Itoa(c.Min)
	case c.Min == 0:
		number = "at most " + number
	case c.Min < c.Max:
		number = strconv.Itoa(c.Min) + " to " + number
	}
	if number == "1" || strings.HasSuffix(number, " 1") {
		return number + " rule"
	}
	return number + " rules"
}

// textError is an error whose JSON form is its text.
type textError struct{ error }

func (t textError) Unwrap() error                { return t.error }
func (t textError) MarshalText() ([]byte, error) { return []byte(t.Error()), nil }

// fail keeps the first error, which is nearest to the cause. One of the moment replaces one that is not.
func (e *Evidence) fail(err error) {
	if err != nil && (e.Err == nil || momentary(err) && !momentary(e.Err)) {
		e.Err = textError{err}
	}
}

// unasked is the evidence before any question.
func unasked() [4]Evidence {
	var all [4]Evidence
	for i := range all {
		all[i] = Evidence{Backend: [...]Mode{NFT, NFT, Legacy, Legacy}[i], Family: families[i%2], Rules: Count{0, Unbounded}}
	}
	return all
}

var families = [...]Family{IPv4, IPv6}

// Of returns the evidence about a backend and family.
func (r Result) Of(backend Mode, family Family) Evidence {
	for _, e := range r.Evidence {
		if e.Backend == backend && e.Family == family {
			return e
		}
	}
	return Evidence{Backend: backend, Family: family, Rules: Count{0, Unbounded}}
}

// rules says how many rules are in a backend.
func (r Result) rules(backend Mode) string {
	v4, v6 := r.Of(backend, IPv4), r.Of(backend, IPv6)
	if v4.Estimate+v6.Estimate > 0 {
		return "about " + strconv.Itoa(r.likely(backend)) + " rules"
	}
	return v4.Rules.plus(v6.Rules).String()
}

func (r Result) likely(backend Mode) int {
	return r.Of(backend, IPv4).likely() + r.Of(backend, IPv6).likely()
}

// String returns the mode and the reason for it in a sentence for people.
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
		if r.fromHome {
			text += ", in the network namespace of process 1"
		}
		if r.now != "" {
			text += "; the host now: " + r.now
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
	default:
		return "no evidence was found, and nft is the default"
	}
}

func hint(e Evidence) bool   { return e.Hint == Yes }
func canary(e Evidence) bool { return e.Canary == Yes }

func hasHostChain(e Evidence) bool   { return e.HostChain == Yes }
func hasHostProgram(e Evidence) bool { return e.HostChain == Yes || e.HostTable == Yes }

// found says in which family a chain is. A wrapped call remembers it, and without package fmt that costs eight page faults less.
func (r Result) found(chain string, in func(Evidence) bool) string {
	where := ""
	for _, f := range families {
		if in(r.Of(r.Mode, f)) {
			where += ", " + f.title()
		}
	}
	return "chain " + chain + " is in " + string(r.Mode) + "'s mangle table (" + strings.TrimPrefix(where, ", ") + ")"
}

// program is the program of the host that decides, or would: one that uses iptables before one that uses nftables.
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
				return fmt.Sprintf("this kernel's nf_tables lacks what iptables-nft needs (%s %s: %v)",
					f.title(), feature.Name, feature.Err)
			}
		}
	}
	return ""
}

func (f Family) title() string { return "IP" + strings.TrimPrefix(string(f), "ip") }

// Uncertainty says in one clause why the result is not conclusive, with what is missing where that is known. It is empty
// for a conclusive one.
func (r Result) Uncertainty() string {
	switch {
	case r.Conclusive:
		return ""
	case r.Reason == Override:
		return "the backend was set explicitly, and evidence from the host was not used"
	}
	for _, e := range r.Evidence {
		if e.Err != nil {
			return fmt.Sprintf("could not inspect %s %s: %v%s", e.Backend, e.Family.title(), e.Err, missingFor(e.Err))
		}
	}
	switch {
	case r.Reason == RuleCount && r.guessed != "":
		return fmt.Sprintf("somebody in this network namespace acted on a guess (%q), and rules that a guess wrote are no evidence", r.guessed)
	case r.now != "":
		return "this container remembers " + string(r.Mode) + ", but the host uses the other backend: " + r.now
	case r.fromHome:
		return "found no evidence in this network namespace; what this container remembers is about another one, that of process 1"
	case r.Reason == Remembered:
		return "no kubelet chain was found, and what this container remembers is a guess"
	}
	if why := r.aboutPrograms(); why != "" {
		return why
	}
	for _, e := range r.Evidence {
		if len(e.Foreign) > 0 {
			c := e.Foreign[0]
			return fmt.Sprintf("nftables' table %q (%s) has chain %q, which is not iptables' own or has rules that are not, so iptables might not use its rules",
				c.Table, e.Family.title(), c.Name)
		}
	}
	switch nft, legacy := r.Of(NFT, IPv4).Supported, r.Of(Legacy, IPv4).Supported; {
	case nft == No && legacy == No:
		return "this kernel has neither nf_tables nor x_tables, so iptables cannot work"
	case nft == No && legacy == Unknown:
		return "this kernel has no nf_tables, and x_tables is not loaded (a module may provide it)"
	}
	native := slices.Concat(r.Of(NFT, IPv4).Native, r.Of(NFT, IPv6).Native)
	slices.Sort(native)
	if native = slices.Compact(native); len(native) > 0 && r.likely(Legacy) == 0 {
		return fmt.Sprintf("found only tables of nftables that iptables does not use (%s); nothing speaks for legacy", quoted(native))
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

// missingFor says what a process needs that met with the error.
func missingFor(err error) string {
	var errno syscall.Errno
	errors.As(err, &errno)
	return map[syscall.Errno]string{
		syscall.EPERM:  ": CAP_NET_ADMIN is missing",
		syscall.EACCES: ": run as root or with group 0, or add CAP_DAC_READ_SEARCH",
		syscall.ENOENT: ": /proc is missing",
	}[errno]
}
