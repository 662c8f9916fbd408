// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// Whether the host's backend is known.

func (s *state) uncertain() *Finding {
	found := Finding{Severity: warning, Look: []string{showEvidence}}
	e := s.host.Evidence
	err := errors.Join(e.NFT.Err, e.Legacy.Err)
	how := s.names[0].call.How
	chosen := how == plan.ByVariable || how == plan.Stored
	const wrong = "iptables here may run the wrong backend: "
	switch {
	case len(s.refused) > 0:
		return s.notTried()
	case s.isBlocked(), s.known(), s.kernel() != nil, s.scarce != nil, s.names[0].fault != nil:
		return nil
	case s.noProc != nil && s.names[0].Wrapper: // see noProgram
		return nil
	case errors.Is(err, xtables.ErrNoProc):
		found.Text = wrong + "what legacy has is not known (" + firstLine(err.Error()) + ")."
		found.Do = try(plan.ErrNoProc)
	case s.mayLackFile(e.Legacy.Err):
		found.Text = wrong + "this user cannot read which tables legacy has (" + firstLine(e.Legacy.Err.Error()) + ")."
		found.Do = "In the Pod's spec, run the container as root or with group 0 (runAsGroup: 0)."
		if !s.network.Own {
			found.Do += " " + s.adviseChoice()
		}
	case s.network.Own:
		return s.ownNetwork(chosen && err == nil)
	case s.both():
		found.Text = wrong + "both backends have chains that only programs of the host make. " + s.whatIsNamed() + "."
		found.Do = "If two programs of the host use two backends, make both use the same: each has a setting, or " +
			"follows the node's alternatives for iptables and ip6tables. A reboot does not fix that. If the node has " +
			"changed its backend, drain it and reboot it: that removes what is left of the old one. " + s.adviseChoice()
	case chosen && err == nil, s.isHealthyGuess():
		return nil
	default:
		found.Text = wrong + "nothing proves which one the host uses (" + s.host.Because() + "). A chain of kubelet " +
			"or Docker would."
		found.Do = s.adviseChoice() + " If such a program starts later than this container, restart the container " +
			"after it."
	}
	return &found
}

// isHealthyGuess reports whether nft runs as a guess, and legacy is known to have nothing that could contradict it. A
// host with firewalld or Podman on nftables looks so.
func (s *state) isHealthyGuess() bool {
	isGuess := s.wanted() == detect.NFT && s.host.Backend == detect.NFT
	return isGuess && s.legacy.isEmpty() && s.host.Evidence.NFT.Err == nil
}

// notTried is about programs that doctor does not start.
func (s *state) notTried() *Finding {
	var all, look []string
	for _, refusal := range s.refused {
		all = append(all, refusal.String())
		look = append(look, "ls -ld "+quoted(refusal.Path))
	}
	return &Finding{
		Severity: warning,
		Text: "Doctor did not start iptables, because others could replace it: " + list(all) + ". So doctor does not " +
			"know whether iptables works.",
		Look: look,
		Do: "Make iptables, its directory and each link on the way belong to root, and let nobody else write to " +
			"them. Then run doctor again.",
	}
}

// ownNetwork is about a Pod's own network, where nothing that the node uses matters. isSettled: somebody has chosen.
func (s *state) ownNetwork(isSettled bool) *Finding {
	found := Finding{Severity: warning, Look: []string{showEvidence}}
	rules := s.host.Evidence.NFT.Rules + s.host.Evidence.Legacy.Rules
	own := "This looks like a Pod's own network, not the node's (interfaces: " +
		list(plainAll(s.network.Interfaces)) + ")"
	switch {
	case isSettled:
		return nil
	case s.both():
		found.Text = "iptables here may run the wrong backend: both have chains that other programs have made in " +
			"this network. " + s.whatIsNamed() + "."
		found.Do = s.adviseAgreement()
	case rules == 0:
		found.Text = own + ". If it is, rules made here do not act on the node, and nothing here shows the node's " +
			"backend."
		found.Look = append(found.Look, "cat /proc/net/dev")
		found.Do = "If the rules are for the node, set hostNetwork: true in the Pod's spec (docker run --network " +
			"host). If they are for the Pod, either backend works. " + s.adviseAgreement()
	default:
		found.Text = own + ", and it has rules. Doctor does not know which backend the Pod's other containers use (" +
			s.host.Because() + ")."
		found.Do = s.adviseAgreement() + " The node's backend does not matter."
	}
	return &found
}

// adviseAgreement says what to do in a Pod's own network, where the node has no part.
func (s *state) adviseAgreement() string {
	return fmt.Sprintf("All containers of one Pod must use the same backend. %s runs here: set %s=%s in each of them.",
		s.wanted(), plan.Variable, s.wanted())
}

// adviseChoice says what to do if one knows the host.
func (s *state) adviseChoice() string {
	runs, other := s.wanted(), string(s.wanted().Other())
	change := "set " + plan.Variable + "=" + other + " in the Pod's spec"
	n := s.names[0]
	switch n.call.How {
	case plan.Stored: // nothing reads the variable
		change = "run " + wrapper(n.Switch) + " select " + other + " in this container"
		if n.readOnly {
			change = "select it where the switch is from, in the image or on a writable mount of the volume"
		}
	case plan.NotWrapped:
		change = "install the wrapper first"
	}
	return fmt.Sprintf("On the node, iptables --version shows the backend of the host's programs. If that is %s, "+
		"ignore this. If it is %s, %s.", runs, other, change)
}

// both reports whether both backends have names.
func (s *state) both() bool {
	return len(s.host.Evidence.NFT.Markers) > 0 && len(s.host.Evidence.Legacy.Markers) > 0
}

// whatIsNamed says which names each backend has.
func (s *state) whatIsNamed() string {
	var all []string
	for _, b := range detect.Backends() {
		var names []string
		for _, n := range s.host.Evidence.Of(b).Markers {
			chain := cmp.Or(n.Chain, "table "+n.Table)
			names = append(names, fmt.Sprintf("%s (%s, %s)", chain, n.Program, n.Family))
		}
		all = append(all, string(b)+" has "+list(names))
	}
	return strings.Join(all, "; ")
}
