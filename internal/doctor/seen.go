// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
)

// What is seen, in the order of diagnoses.

// printed returns a test for calls that failed with a code, or printed a line of it.
func printed(code string) func(*state) string {
	return func(s *state) string {
		first, others := s.with(code)
		if first.code == "" {
			return ""
		}
		return first.String() + "." + about(" The same goes for %s.", others)
	}
}

// lists reports whether a call has listed the wanted backend's rules of a family.
func (s *state) lists(f detect.Family) bool {
	isIt := func(c called) bool { return c.Command == savers[f] && c.backend == s.wanted() && c.worked() }
	return slices.ContainsFunc(s.calls, isIt)
}

// shown reports whether a call has shown that iptables works. Without tables, iptables-legacy-save asks for nothing.
func (s *state) shown() bool {
	return slices.ContainsFunc(s.calls, func(c called) bool {
		f := slices.Index(savers[:], c.Command)
		return f >= 0 && c.worked() && (c.backend == detect.NFT || len(s.families[f].listed) > 0)
	})
}

// refused and notCapable stand in for calls that show nothing. That another user may not read /proc is no refusal.
func refused(s *state) string {
	err := s.errors[s.wanted()]
	isPrivate := s.wanted() == detect.Legacy && s.process.User != 0 && errors.Is(err, unix.EACCES)
	if s.shown() || isPrivate || !isRefusal(err) {
		return ""
	}
	return fmt.Sprintf("The kernel refuses to answer about %s: %s.", s.wanted(), oneLine(err))
}

// notCapable is silent if the program's file has capabilities that count: then it may have others than this process.
func notCapable(s *state) string {
	_, err := unix.Getxattr(s.commands[0].Call.Program, "security.capability", nil)
	noNew, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	missing := s.lacks(s.wanted())
	if s.shown() || missing == "" || err == nil && noNew != 1 {
		return ""
	}
	return fmt.Sprintf("%s is missing (CapEff), which %s needs. This is user %d.", missing, s.wanted(), s.process.User)
}

// lacks is the capability that a backend needs and this process lacks, "" if it has all. Legacy opens a raw socket.
func (s *state) lacks(b detect.Backend) string {
	for _, capability := range s.process.Missing {
		if capability == netAdmin || b == detect.Legacy {
			return capability
		}
	}
	return ""
}

func notLoaded(s *state) string {
	var modules []string
	for f, module := range [...]string{detect.IPv4: "ip_tables", detect.IPv6: "ip6_tables"} {
		isMissing := s.families[f].unloaded && !s.families[f].isOff && !s.named(savers[f]).isAbsent()
		if isMissing && s.wanted() == detect.Legacy {
			modules = append(modules, module)
		}
	}
	return about("Legacy needs modules that are not loaded, and cannot be loaded here: %s. In a sandbox such as "+
		"gVisor, legacy may still work: iptables -S shows it.", modules)
}

// noRules is about a dry run that was refused, and not for want of rights or memory, or because of a table of its name.
func noRules(s *state) string {
	var parts []string
	for _, f := range families {
		lacks, err := s.families[f].lacks, s.families[f].refused
		isOther := isRefusal(err) || plan.IsScarce(err) || errors.Is(err, unix.EEXIST)
		switch {
		case lacks != "":
			parts = append(parts, fmt.Sprintf("for %v it lacks %s", f, lacks))
		case err != nil && !isOther:
			parts = append(parts, fmt.Sprintf("for %v: %v", f, err))
		}
	}
	return about("nf_tables cannot take the rules of iptables: %s.", parts)
}

func cannotRun(s *state) string {
	failing := s.which(fails)
	if len(failing) == 0 {
		return ""
	}
	first := failing[0]
	why := func(c Command) string { return anyCommand.ReplaceAllString(c.Call.Error, "") }
	others := filter(failing[1:], func(c Command) bool { return why(c) == why(first) })
	return fmt.Sprintf("A call of %s fails: %s.", first.Name, oneLine(first.Call.Err)) +
		about(" The same goes for %s.", pathsOf(others))
}

// hangs is about a program that used next to no time. One that used more may need a higher limit: that is a fact.
func hangs(s *state) string {
	c, _ := s.with(endless)
	const idle = 100 * time.Millisecond
	if c.code == "" || c.Used >= idle {
		return ""
	}
	return c.String() + "."
}

func runsOther(s *state) string {
	commands := s.which(differs)
	if len(commands) == 0 {
		return ""
	}
	c, host := commands[0], s.host
	text := fmt.Sprintf("%s here runs %s, but the host uses %s (%s). Neither lists the other's rules.", c.Name, c.Call,
		host.Backend, host.Because())
	if len(commands) < len(s.commands) {
		text += about(" The same goes for %s.", pathsOf(commands[1:]))
	}
	return text
}

// otherHas returns a test for the tables of the other backend: is says whether one has what counts.
func otherHas(is func(rules.Table) bool) func(*state) string {
	return func(s *state) string {
		other := s.wanted().Other()
		used := s.used(other)
		if !slices.ContainsFunc(used, is) {
			return ""
		}
		return fmt.Sprintf("Packets pass both backends, and %s has %s.", other, s.has(other)) +
			about(" Its chains: %s.", chains(used))
	}
}

// unusable is about tables and base chains that nft has made otherwise than iptables does.
func unusable(s *state) string {
	var parts []string
	for _, t := range s.tables {
		if t.Owned && isOf(t, s.wanted()) {
			parts = append(parts, title(t)+" belongs to a process, and nobody else can change it")
		}
		if t.Dormant && isOf(t, s.wanted()) {
			parts = append(parts, title(t)+" is dormant: its rules do nothing")
		}
		for _, c := range t.Wrong {
			if s.wanted() == detect.NFT && (c.Is.Hook == "" || !s.program().isOlder(1, 8, 8)) {
				parts = append(parts, fmt.Sprintf("%s of %s has %s, and not %s", c.Chain, title(t), c.Is, c.Want))
			}
		}
	}
	return about("iptables makes these differently: %s.", parts)
}

func madeWithNFT(s *state) string {
	var parts []string
	for _, t := range s.tables {
		if t.NFTMade > 0 && isOf(t, s.wanted()) {
			parts = append(parts, fmt.Sprintf("%s has %d in %s", title(t), t.NFTMade, list(each(t.MadeIn, quote))))
		}
	}
	return about("Rules were made with nft: %s. iptables may list such a rule without its conditions, and "+
		"iptables-restore then writes it back so.", parts)
}

// isOld: an iptables-nft before 1.8.8 drops the matches that it does not know when it reads a rule, and writes the rule
// back without them (kubernetes/kubernetes#112477, cloudnativelabs/kube-router#1370).
func isOld(s *state) string {
	p := s.program()
	if p.Backend != detect.NFT || !p.isOlder(1, 8, 8) {
		return ""
	}
	return fmt.Sprintf("%s is %s. When it writes a table back, it loses conditions of rules that 1.8.8 or newer "+
		"has made: a DROP of some packets becomes a DROP of all.", p.Path, p.Version)
}

func cannotLock(s *state) string {
	if s.lockErr == nil {
		return ""
	}
	return fmt.Sprintf("iptables-legacy cannot take its lock, %s: %v.", quoted(s.lockFile), s.lockErr)
}

func bypassed(s *state) string {
	commands := s.which(bypasses)
	text := about("Not wrapped: %s.", each(commands, Command.String))
	if slices.ContainsFunc(commands, func(c Command) bool { return c.Backend == "" }) {
		text += " Doctor does not know what that runs, and did not start it."
	}
	return text
}

func notStarted(s *state) string {
	return about("Doctor did not start iptables, because others can write %s.", each(s.exposed, quoted))
}

// guessed is silent if a choice is kept and the other backend has no marker, if nft is the guess and legacy is empty (a
// host with firewalld on nftables), and if the wanted backend cannot be asked. In a Pod's own network without rules,
// they may be meant for the node.
func guessed(s *state) string {
	how, e := s.commands[0].Call.How, s.host.Evidence
	other := s.wanted().Other()
	isKept := (how == plan.ByVariable || how == plan.Stored) && s.errors[other] == nil && len(e.Of(other).Markers) == 0
	isLegacyEmpty := s.errors[detect.Legacy] == nil && len(s.used(detect.Legacy))+len(e.Legacy.Markers) == 0
	isNFT := s.host.Backend == detect.NFT && s.wanted() == detect.NFT
	isAsking := s.network.Own == detect.Yes && len(s.used(detect.NFT))+len(s.used(detect.Legacy)) == 0
	if s.known() || isRefusal(s.errors[s.wanted()]) || (isKept || isNFT && isLegacyEmpty) && !isAsking {
		return ""
	}
	return fmt.Sprintf("The host's backend is a guess (%s). iptables here runs %s.", s.host.Because(), s.wanted())
}
