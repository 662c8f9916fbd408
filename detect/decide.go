// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// Reason is the row of the decision table that applied.
type Reason string

// The reasons, in the order of the table.
const (
	Override      Reason = "override"
	KubeletHint   Reason = "kubelet-hint"
	KubeletCanary Reason = "kubelet-canary"
	Remembered    Reason = "remembered"
	RuleCount     Reason = "rule-count"
	OnlySupported Reason = "only-supported"
	OnlyInstalled Reason = "only-installed"
	Default       Reason = "default"
)

// Kubelet reports that kubelet's chains decided.
func (r Reason) Kubelet() bool { return r == KubeletHint || r == KubeletCanary }

// backend is what is known of one backend, both families together except for what works.
type backend struct {
	hint, canary Answer
	exists       Answer // it has one of the five tables
	rules        Count
	likely       int    // number of rules, the best estimate
	ipv4, ipv6   Answer // it works for the family, as far as is known
}

type row struct {
	reason     Reason
	mode       Mode
	applies    bool
	conclusive bool // nothing that could not be read could overturn the row
}

// decisionTable has a row per line. The first row that applies decides.
//
// A hint outranks a canary because a host that changed its backend keeps the old backend's canary until it is rebooted. Nft
// wins a tie because it is what a current host uses; what legacy has is more likely left over. That nft lacks IPv6 alone
// counts only if legacy is known to have it: a host may speak IPv4 only.
func decisionTable(q Query, nft, legacy backend) [15]row {
	return [...]row{
		{Override, NFT, q.Override == NFT, false},
		{Override, Legacy, q.Override == Legacy, false},
		{KubeletHint, NFT, nft.hint == Yes, true},
		{KubeletHint, Legacy, legacy.hint == Yes, nft.hint == No},
		{KubeletCanary, NFT, nft.canary == Yes, legacy.hint == No},
		{KubeletCanary, Legacy, legacy.canary == Yes, nft.withoutKubelet()},
		{Remembered, NFT, q.Remembered.holds(NFT, nft), q.Remembered.Conclusive && legacy.withoutKubelet()},
		{Remembered, Legacy, q.Remembered.holds(Legacy, legacy), q.Remembered.Conclusive && nft.withoutKubelet()},
		{RuleCount, NFT, nft.likely > 0 && nft.likely >= legacy.likely, nft.rules.Min >= max(legacy.rules.Max, 1) && legacy.withoutKubelet() && q.Guessed == ""},
		{RuleCount, Legacy, legacy.likely > nft.likely, legacy.rules.Min > nft.rules.Max && nft.withoutKubelet() && q.Guessed == ""},
		{OnlySupported, NFT, legacy.lacks(nft), false},
		{OnlySupported, Legacy, nft.lacks(legacy) || nft.ipv6 == No && legacy.ipv6 == Yes, false},
		{OnlyInstalled, NFT, q.Installed == NFT, false},
		{OnlyInstalled, Legacy, q.Installed == Legacy, false},
		{Default, NFT, true, false},
	}
}

// decide returns the first row of the table that applies.
func (q Query) decide(nft, legacy backend) row {
	rows := decisionTable(q, nft, legacy)
	return rows[slices.IndexFunc(rows[:], func(r row) bool { return r.applies })]
}

// Reasons returns all reasons in the order of the decision table.
func Reasons() []Reason {
	return []Reason{Override, KubeletHint, KubeletCanary, Remembered, RuleCount, OnlySupported, OnlyInstalled, Default}
}

// withoutKubelet reports that kubelet's chains are known not to be in this backend.
func (b backend) withoutKubelet() bool { return b.hint == No && b.canary == No }

// lacks reports that this backend cannot work where the other one can, or may, once a module is loaded. IPv4 decides; IPv6
// does where neither backend has IPv4.
func (b backend) lacks(other backend) bool {
	return b.ipv4 == No && (other.ipv4 != No || b.ipv6 == No && other.ipv6 != No)
}

// Conflict is a contradiction between the two backends. After a host changed its backend without a reboot, the one it left shows it.
type Conflict string

// The conflicts, most severe first.
const (
	HintInBoth   Conflict = "hint-in-both"   // HintChain is in both backends
	CanaryInBoth Conflict = "canary-in-both" // CanaryChain is in both backends
	StrayCanary  Conflict = "stray-canary"   // CanaryChain is in one backend, HintChain in the other only
	RulesInBoth  Conflict = "rules-in-both"  // both backends have rules in the five tables
)

// Explain returns a sentence for people.
func (c Conflict) Explain() string {
	return cmp.Or(map[Conflict]string{
		HintInBoth:   HintChain + " is in both backends: the host changed its backend without a reboot, or two kubelets differ",
		CanaryInBoth: CanaryChain + " is in both backends: the host changed its backend without a reboot",
		StrayCanary:  "the canary is in one backend and the hint in the other: the canary is left over from the previous backend",
		RulesInBoth:  "both backends have rules: both sets are active, but each backend lists only its own",
	}[c], string(c))
}

// conflicts lists those that are known.
func conflicts(nft, legacy backend) []Conflict {
	found := []Conflict{}
	add := func(c Conflict, known bool) {
		if known {
			found = append(found, c)
		}
	}
	stray := func(current, former backend) bool {
		return current.hint == Yes && current.canary != Yes && former.hint == No && former.canary == Yes
	}
	add(HintInBoth, nft.hint == Yes && legacy.hint == Yes)
	add(CanaryInBoth, nft.canary == Yes && legacy.canary == Yes)
	add(StrayCanary, stray(nft, legacy) || stray(legacy, nft))
	add(RulesInBoth, nft.rules.Min > 0 && legacy.rules.Min > 0)
	return found
}

// backends brings the evidence of both families together.
func (q Query) backends(e [4]Evidence) (nft, legacy backend) {
	together := func(v4, v6 Evidence) backend {
		return backend{
			hint: either(v4.Hint, v6.Hint), canary: either(v4.Canary, v6.Canary), exists: either(v4.exists, v6.exists),
			rules: v4.Rules.plus(v6.Rules), likely: v4.likely() + v6.likely(),
			ipv4: q.works(v4), ipv6: q.works(v6),
		}
	}
	return together(e[0], e[1]), together(e[2], e[3])
}

// likely is the number of rules for a guess.
func (e Evidence) likely() int { return max(e.Estimate, e.Rules.Min) }

// works says whether the backend can be used for the family: the kernel has it, and a dry run did not show otherwise. What
// a dry run shows is no reason to run programs that are not installed: those that are may still be able to do something.
func (q Query) works(e Evidence) Answer {
	if !q.Installed.exists() && slices.ContainsFunc(e.Features, func(f Feature) bool { return f.Has == No }) {
		return No
	}
	return e.Supported
}

// either is yes if one is yes and no if both are no.
func either(a, b Answer) Answer {
	if most := max(a, b); most == Yes || a == b {
		return most
	}
	return Unknown
}

func (q Query) result(e [4]Evidence) Result {
	nft, legacy := q.backends(e)
	r := q.decide(nft, legacy)
	result := Result{
		Version: 2, Mode: r.mode, Reason: r.reason, Conclusive: r.conclusive,
		Evidence: e[:], Conflicts: conflicts(nft, legacy), guessed: q.Guessed,
	}
	if r.reason == Remembered {
		m := q.Remembered // a pointer to it would move the query to the heap
		result.Remembered = &m
	}
	return result
}

// holds reports whether the container remembers a backend. A guess leaves a table behind if it has written anything; what
// somebody chose holds without.
func (m Memory) holds(mode Mode, b backend) bool {
	return m.Mode == mode && (m.Conclusive || m.Pending || m.Reason == Override || b.exists != No)
}

// momentary reports whether the same question may be answered at the next moment.
func momentary(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains([]syscall.Errno{
		syscall.ENFILE, syscall.EMFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EINTR, syscall.EAGAIN}, errno)
}

// Memorable says why a guess is not worth remembering, nil if it is. What a call could not see for a reason of the moment, the
// next one can; without CAP_NET_ADMIN nothing can be written; and where one backend has not even twice as many rules as the
// other, the next count may differ. It is nil for a conclusive answer, and for
// one that only somebody's guess makes doubtful.
func (r Result) Memorable() error {
	if r.Conclusive || r.doubted {
		return nil
	}
	for _, e := range r.Evidence {
		if momentary(e.Err) {
			return e.Err
		}
		for _, f := range e.Features {
			if momentary(f.Err) {
				return f.Err
			}
		}
	}
	if r.unprivileged {
		return fmt.Errorf("CAP_NET_ADMIN is missing: %w", syscall.EPERM)
	}
	if nft, legacy := r.likely(NFT), r.likely(Legacy); r.Reason == RuleCount && max(nft, legacy)/2 < min(nft, legacy) {
		return errors.New("too close to tell: " + r.Because())
	}
	return nil
}

// Blind reports that something of one backend could not be asked.
func (r Result) Blind() bool {
	return slices.ContainsFunc(r.Evidence, func(e Evidence) bool { return e.Hint == Unknown })
}

// because says since when, and what decided then.
func (m *Memory) because() string {
	if m == nil {
		return "this container remembers it"
	}
	text := "remembered"
	if !m.Conclusive {
		text += " as a guess"
	}
	if !m.Since.IsZero() {
		text += " since " + m.Since.UTC().Format("2006-01-02 15:04 MST")
	}
	if because := cmp.Or(m.Because, string(m.Reason)); because != "" {
		text += "; what decided then: " + because
	}
	return text
}
