// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// Whether iptables runs the host's backend.

func (s *state) wrongBackend() *Finding {
	right := s.wanted()
	runs := s.names[0].call
	differing := s.which(func(n name) bool { return n.call.Backend == right.Other() })
	switch {
	case s.variErr != nil && slices.ContainsFunc(s.names, func(n name) bool { return n.Wrapper }):
		do := try(s.variErr)
		if s.known() {
			do = "Remove " + plan.Variable + ", or set it to " + string(right) + "."
		}
		return &Finding{
			Severity: problem,
			Text:     "Every call of iptables fails with status 2: " + s.variErr.Error() + ".",
			Look:     []string{showVariable},
			Do:       do + " " + whereVariable,
		}
	case s.known() && runs.Backend == right.Other():
		c := s.cause(s.names[0])
		return &Finding{
			Severity: problem,
			Text: fmt.Sprintf("iptables here runs %s, but the host uses %s (%s). Neither lists the other's rules. %s",
				runs.Backend, right, s.host.Because(), c.why),
			Look: append([]string{showEvidence}, c.look...),
			Do:   c.do,
		}
	case len(differing) > 0:
		uses := "iptables here runs " + string(right) + "."
		if s.known() {
			uses = fmt.Sprintf("the host uses %s (%s).", right, s.host.Because())
		}
		c := s.cause(differing[0])
		return &Finding{
			Severity: problem,
			Text:     fmt.Sprintf("These run %s: %s. But %s %s", right.Other(), list(pathsOf(differing)), uses, c.why),
			Look:     append([]string{showEvidence}, c.look...),
			Do:       c.do,
		}
	}
	return nil
}

// cause is why a name runs the wrong backend, what to do about it, and the commands that show it.
type cause struct {
	why, do string
	look    []string
}

const (
	showVariable  = "printenv " + plan.Variable
	whereVariable = "It is set in the Pod's spec, in the image, or by the entry point."
)

func (s *state) cause(n name) cause {
	switch n.call.How {
	case plan.Stored:
		stored := cause{
			why: fmt.Sprintf("An earlier call or select stored %s in the switch, %s/%s.", n.call.Backend, n.Switch,
				link.Switch),
			do:   s.adviseReset(n) + " Then restart the program that makes the rules, so that it makes them again.",
			look: []string{"ls -l " + quoted(n.Switch+"/"+link.Switch)},
		}
		if !n.readOnly {
			stored.do += " In Kubernetes, deleting the Pod does both, unless the image or a volume contains the switch."
		}
		if s.network.Process1 == detect.No {
			stored.why += " This is not the network of process 1: it looks as if an agent has entered a Pod's " +
				"network, which has a backend of its own."
			stored.do = "In the agent's image, make the six commands (iptables, ip6tables, …) symbolic links " +
				"straight to iptables-wrapper, not to " + link.Switch + ": then nothing is stored, and each call " +
				"follows the network that it is in."
		}
		return stored
	case plan.Recorded:
		return cause{
			why: fmt.Sprintf("An earlier call or select recorded %s, until the container ends.", n.call.Backend),
			do: "In this container, run iptables-wrapper reset, and restart the program that makes the rules. Or " +
				"restart the container.",
		}
	case plan.ByVariable:
		return cause{
			why:  plan.Variable + " is " + string(s.variable) + ".",
			do:   "Remove " + plan.Variable + ", or set it to " + string(s.host.Backend) + ". " + whereVariable,
			look: []string{showVariable},
		}
	}
	return s.bypass(n)
}

// adviseReset says how calls decide again where a backend is stored.
func (s *state) adviseReset(n name) string {
	if n.readOnly {
		return try(unix.EROFS, link.ErrStored)
	}
	return "In this container, run " + wrapper(n.Switch) + " reset: then calls follow the host."
}

// bypass says how a name leads past the wrapper.
func (s *state) bypass(n name) cause {
	if n.Switch != "" {
		switched := n.Switch + "/" + link.Switch
		return cause{
			why:  "The switch " + switched + " leads to " + n.ResolvesTo + ", which is not an iptables program.",
			do:   s.adviseInstall(n),
			look: []string{"ls -l " + quoted(switched)},
		}
	}
	c := cause{
		why: n.Command.Name + " here is not wrapped: " + n.Path + " is another program.",
		do: s.adviseInstall(n) + " Make sure that nothing changes it afterwards, such as an entry point that sets " +
			"alternatives.",
	}
	if n.ResolvesTo != n.Path {
		c.why = n.Command.Name + " here is not wrapped: " + n.Path + " leads to " + n.ResolvesTo + "."
	}
	for _, hop := range n.way {
		c.look = append(c.look, "ls -l "+quoted(hop))
	}
	if n.script {
		c.look = append(c.look, n.Command.Name+" --version")
	}
	return c
}

// wrapper returns the command that runs the wrapper in the directory of a switch.
func wrapper(directory string) string {
	if directory == "/usr/sbin" {
		return link.Wrapper
	}
	return quoted(directory + "/" + link.Wrapper)
}

// adviseInstall says how a name comes to run the wrapper, and the other names with it.
func (s *state) adviseInstall(n name) string {
	if n.readOnly {
		return try(unix.EROFS, remedy.ErrInstall)
	}
	option := ""
	if len(s.which(name.needsForce)) > 0 {
		option = " --force"
	}
	if n.directory() != "/usr/sbin" {
		option += " --dir " + quoted(n.directory())
	}
	return "Run iptables-wrapper install" + option + " in the image and, until it is rebuilt, in this container."
}

func (s *state) notWrapped() *Finding {
	bypassing := s.which(name.bypasses)
	switch {
	case len(s.refused) > 0, s.wrongBackend() != nil:
		return nil
	case len(bypassing) > 0:
		return s.bypassing(bypassing)
	case len(s.others) > 0:
		return s.copies()
	}
	return nil
}

func (s *state) bypassing(names []name) *Finding {
	c := s.bypass(names[0])
	found := Finding{
		Severity: warning,
		Text:     "These bypass the wrapper: " + list(pathsOf(names)) + ".",
		Look:     c.look,
		Do:       c.do,
	}
	foreign := s.which(name.isForeign)
	if len(foreign) > 0 {
		found.Severity = problem
		found.Text += " " + foreign[0].ResolvesTo + " is not iptables: " + foreign[0].printed
		return &found
	}
	isUnknown := slices.ContainsFunc(names, func(n name) bool { return n.Backend == "" })
	switch {
	case isUnknown:
		found.Text += " Doctor could not find out which backend runs instead."
		found.Do += " A script that enters the host and runs the iptables there needs no wrapper."
	case s.known():
		found.Text += fmt.Sprintf(" What runs instead is %s: right on this host, and wrong on one that uses %s.",
			s.wanted(), s.wanted().Other())
	default:
		found.Text += fmt.Sprintf(" What runs instead is %s, whatever the host uses.", s.wanted())
	}
	return &found
}

// copies is about other files with the six commands: programs with another PATH run them.
func (s *state) copies() *Finding {
	return &Finding{
		Severity: warning,
		Text: "There is another iptables beside the wrapped one: " + list(s.others) + ". What is called by its path, " +
			"or with another PATH, bypasses the wrapper.",
		Look: []string{"ls -l " + quoted(s.others[0])},
		Do: "Remove what is there, or run iptables-wrapper install --dir " + quoted(filepath.Dir(s.others[0])) +
			" in the image, too. If nothing calls it, ignore this.",
	}
}
