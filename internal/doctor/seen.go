// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
		text := first.String() + "."
		if len(others) > 0 {
			text += " The same of " + list(others) + "."
		}
		return text
	}
}

// saved is the call that lists the rules of a family.
func (s *state) saved(f detect.Family) (c called, isCalled bool) {
	i := slices.IndexFunc(s.calls, func(c called) bool { return c.Command == savers[f] })
	if i < 0 {
		return called{}, false
	}
	return s.calls[i], true
}

// shows reports whether a call has shown that iptables works for a family. Where legacy has no table, iptables-save asks
// the kernel for nothing.
func (s *state) shows(f detect.Family) bool {
	c, isCalled := s.saved(f)
	return isCalled && c.worked() && (s.wanted() == detect.NFT || len(s.families[f].listed) > 0)
}

// shown reports whether a call has shown it for either family.
func (s *state) shown() bool { return slices.ContainsFunc(families, s.shows) }

// refused and notCapable stand in for calls that show nothing.
func refused(s *state) string {
	err := s.errors[s.wanted()]
	isPrivate := s.wanted() == detect.Legacy && s.process.User != 0 && errors.Is(err, unix.EACCES) // a file of /proc
	if s.shown() || isPrivate || !isRefusal(err) {
		return ""
	}
	return fmt.Sprintf("The kernel refuses to answer about %s: %s.", s.wanted(), oneLine(err.Error()))
}

func notCapable(s *state) string {
	missing, bit := "", 0
	switch {
	case s.shown() || s.hasFileCapabilities():
		return ""
	case !s.process.netAdmin:
		missing, bit = "CAP_NET_ADMIN", unix.CAP_NET_ADMIN
	case !s.process.netRaw && s.wanted() == detect.Legacy:
		missing, bit = "CAP_NET_RAW", unix.CAP_NET_RAW
	default:
		return ""
	}
	return fmt.Sprintf("%s is missing (bit 0x%x of CapEff), which %s needs. This is user %d.", missing, 1<<bit,
		s.wanted(), s.process.User)
}

// hasFileCapabilities reports whether iptables may have other capabilities than this process.
func (s *state) hasFileCapabilities() bool {
	_, err := unix.Getxattr(s.commands[0].plan.Program, "security.capability", nil)
	noNew, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err == nil && noNew != 1
}

func notLoaded(s *state) string {
	var modules []string
	for f, module := range [...]string{detect.IPv4: "ip_tables", detect.IPv6: "ip6_tables"} {
		family := s.families[f]
		isMissing := family.loaded == detect.No && !family.loadable && !family.isOff
		if isMissing && s.wanted() == detect.Legacy && !s.named(savers[f]).isAbsent() {
			modules = append(modules, module)
		}
	}
	if len(modules) == 0 {
		return ""
	}
	return fmt.Sprintf("Legacy needs what is not loaded, and cannot be loaded here: %s. In a sandbox such as gVisor, "+
		"legacy may work all the same: iptables -S shows it.", list(modules))
}

// takesNoRules is about a dry run that the kernel refused, for another reason than rights, or want of memory, or a table
// of that name.
func takesNoRules(s *state) string {
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
	if len(parts) == 0 {
		return ""
	}
	return "nf_tables cannot take the rules of iptables: " + strings.Join(parts, "; ") + "."
}

func cannotRun(s *state) string {
	failing := s.which(fails)
	if len(failing) == 0 {
		return ""
	}
	first := failing[0]
	text := fmt.Sprintf("A call of %s fails: %s.", first.Name, oneLine(first.plan.Error))
	isLike := func(c command) bool {
		return anyCommand.ReplaceAllString(c.plan.Error, "") == anyCommand.ReplaceAllString(first.plan.Error, "")
	}
	others := slices.DeleteFunc(failing[1:], func(c command) bool { return !isLike(c) })
	if len(others) > 0 {
		text += " The same of " + list(pathsOf(others)) + "."
	}
	return text
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
	c := commands[0]
	text := fmt.Sprintf("%s here runs %s, but the host uses %s (%s). Neither lists the other's rules.", c.Name, c.plan,
		s.host.Backend, s.host.Because())
	if len(commands) > 1 && len(commands) < len(s.commands) {
		text += " The same of " + list(pathsOf(commands[1:])) + "."
	}
	return text
}

// otherHas returns a test for tables of the other backend: of each, is says whether it has what counts.
func otherHas(is func(rules.Table) bool) func(*state) string {
	return func(s *state) string {
		other := s.wanted().Other()
		if !slices.ContainsFunc(s.tables, func(t rules.Table) bool { return isOf(t, other) && is(t) }) {
			return ""
		}
		used := s.tablesThat(func(t rules.Table) bool { return isOf(t, other) && isUsed(t) })
		text := fmt.Sprintf("Packets pass both backends, and %s has %s.", other, s.has(other))
		if chains := chains(used); chains != "" {
			text += " Its chains: " + chains + "."
		}
		return text
	}
}

// unusable is about tables and base chains that nft has made otherwise than iptables does.
func unusable(s *state) string {
	var parts []string
	for _, t := range s.tables {
		switch {
		case !isOf(t, s.wanted()):
		case t.Owned:
			parts = append(parts, fmt.Sprintf("%s belongs to a process, and nobody else can change it", title(t)))
		case t.Dormant:
			parts = append(parts, fmt.Sprintf("%s is dormant: its rules do nothing", title(t)))
		}
		for _, c := range t.Wrong {
			if c.Is.Hook == "" || !s.program().isOlder(1, 8, 8) {
				parts = append(parts, fmt.Sprintf("%s of %s has %s, and not %s", c.Chain, title(t), c.Is, c.Want))
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Not as iptables makes it: " + fit(room*2, "; ", parts) + "."
}

func madeWithNFT(s *state) string {
	var parts []string
	for _, t := range s.tables {
		if isOf(t, s.wanted()) && t.NFTMade > 0 {
			in := list(each(t.MadeIn, func(chain string) string { return fmt.Sprintf("%+q", chain) }))
			parts = append(parts, fmt.Sprintf("%s has %d in %s", title(t), t.NFTMade, in))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Rules were made with nft: " + fit(room*2, "; ", parts) + ". iptables may list such a rule without its " +
		"conditions, and iptables-restore then writes it back so."
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
	if len(commands) == 0 {
		return ""
	}
	text := "Not wrapped: " + list(each(commands, command.leads)) + "."
	isUnknown := func(c command) bool { return c.Backend == "" }
	if slices.ContainsFunc(commands, isUnknown) {
		text += " Doctor does not know what that runs, and did not start it."
	}
	return text
}

func notStarted(s *state) string {
	if len(s.exposed) == 0 {
		return ""
	}
	return "Doctor did not start iptables, because others can write " + list(each(s.exposed, quoted)) + "."
}

// guessed is silent if somebody has chosen, or if nft is the guess and legacy has nothing that could contradict it: a
// host with firewalld or Podman on nftables looks so. A Pod's own network without rules is another matter: rules may be
// meant for the node.
func guessed(s *state) string {
	isEmpty := !slices.ContainsFunc(s.tables, func(t rules.Table) bool { return !t.Native && isUsed(t) })
	how := s.commands[0].plan.How
	isChosen := how == plan.ByVariable || how == plan.Stored
	isLegacyUsed := slices.ContainsFunc(s.tables, func(t rules.Table) bool { return isOf(t, detect.Legacy) && isUsed(t) })
	isLegacyEmpty := s.errors[detect.Legacy] == nil && !isLegacyUsed && len(s.host.Evidence.Legacy.Markers) == 0
	isSilent := isChosen || s.host.Backend == detect.NFT && s.wanted() == detect.NFT && isLegacyEmpty
	if s.known() || isSilent && !(isEmpty && s.network.Own == detect.Yes) {
		return ""
	}
	return fmt.Sprintf("The host's backend is a guess (%s). iptables here runs %s.", s.host.Because(), s.wanted())
}
