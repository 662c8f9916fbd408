// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// Whether iptables runs the host's backend.

func (o *observation) wrongBackend() *Finding {
	right := o.wanted()
	differing := o.differing(right)
	switch {
	case o.wrong != nil && slices.ContainsFunc(o.Names, func(n link.Name) bool { return n.Wrapper }):
		do := "Set " + call.Variable + " to nft or legacy, or remove it"
		if o.known() {
			do = "Remove " + call.Variable + ", or set it to " + string(right)
		}
		return &Finding{
			Severity: problem,
			Text:     "Every call of iptables fails with status 2: " + o.wrong.Error() + ".",
			Look:     []string{showVariable},
			Do:       do + ", in the Pod's spec or wherever it is set.",
		}
	case o.known() && o.Here.Backend == right.Other():
		c := o.cause(o.Names[0], o.Here)
		return &Finding{
			Severity: problem,
			Text: fmt.Sprintf("iptables here runs %s, but the host uses %s (%s). Neither lists the other's rules. %s",
				o.Here.Backend, right, o.Host.Because, c.why),
			Look: append([]string{showEvidence}, c.look...),
			Do:   c.do,
		}
	case len(differing) > 0 && right != "":
		uses := "iptables here runs " + string(right) + "."
		if o.known() {
			uses = fmt.Sprintf("the host uses %s (%s).", right, o.Host.Because)
		}
		first := slices.IndexFunc(o.Names, func(n link.Name) bool { return n.Path == differing[0] })
		c := o.cause(o.Names[first], o.calls[first])
		return &Finding{
			Severity: problem,
			Text: o.these(differing, "runs "+string(right.Other()), "run "+string(right.Other())) + " But " + uses +
				" " + c.why,
			Look: append([]string{showEvidence}, c.look...),
			Do:   c.do,
		}
	}
	return nil
}

// differing are the paths of the names that run the other backend than the right one.
func (o *observation) differing(right detect.Backend) (paths []string) {
	for i, h := range o.calls {
		if o.Names[i].Err == nil && h.Backend != "" && h.Backend != right {
			paths = append(paths, o.Names[i].Path)
		}
	}
	return paths
}

// cause is why a name runs the wrong backend, what shows it, and what helps.
type cause struct {
	why, do string
	look    []string
}

const showVariable = "printenv " + call.Variable

func (o *observation) cause(n link.Name, h here.Here) cause {
	stored := cause{
		why: fmt.Sprintf("An earlier call or select stored %s in the switch, %s/%s.", h.Backend, n.Switch, link.Switch),
		do: "In this container, run " + wrapper(n.Switch) + " reset: then calls follow the host. Then restart the " +
			"program that makes the rules, so that it makes them again. In Kubernetes, deleting the Pod does both, " +
			"unless the image or a volume contains the switch.",
		look: []string{"ls -l " + n.Switch + "/" + link.Switch},
	}
	switch {
	case h.How == here.Stored && o.Network.Process1 == detect.No:
		stored.why += " This is not the network of process 1: it looks as if an agent has entered a Pod's network, " +
			"which has a backend of its own."
		stored.do = "In the agent's image, make the six commands (iptables, ip6tables, …) symbolic links straight to " +
			"iptables-wrapper, not to " + link.Switch + ": then nothing is stored, and each call follows the network " +
			"that it is in."
		return stored
	case h.How == here.Stored:
		return stored
	case h.How == here.Recorded:
		return cause{
			why: fmt.Sprintf("%s was a guess at the first call here, and is recorded until the container ends.",
				h.Backend),
			do: "In this container, run iptables-wrapper reset, and restart the program that makes the rules. Or " +
				"restart the container.",
		}
	case h.How == here.Variable:
		return cause{
			why: call.Variable + " is " + string(o.variable) + ".",
			do: "Remove " + call.Variable + ", or set it to " + string(o.Host.Backend) + ", in the Pod's spec or " +
				"wherever it is set.",
			look: []string{showVariable},
		}
	}
	return o.bypass(n)
}

// bypass is how a name leads past the wrapper.
func (o *observation) bypass(n link.Name) cause {
	alternative := alternativeOf(n.Path)
	if alternative == "" {
		leads := n.Path + " is another program."
		if n.ResolvesTo != n.Path {
			leads = n.Path + " leads to " + n.ResolvesTo + "."
		}
		return cause{
			why:  n.Name + " here is not wrapped: " + leads,
			do:   install(n.Path),
			look: []string{"ls -l " + n.Path},
		}
	}
	c := cause{
		why:  n.Name + " here is not wrapped: " + alternative + " leads to " + n.ResolvesTo + ".",
		do:   install(n.Path) + " Let no entry point set alternatives afterwards.",
		look: []string{"ls -l " + n.Path, "ls -l " + alternative}, // the one leads to the other
	}
	wrapped := pathsOf(o.Names, func(n link.Name) bool { return n.Wrapper || n.Switch != "" })
	if len(wrapped) > 0 {
		c.why += " Something has set this alternative since the wrapper was installed, such as an entry point. " +
			"Still wrapped: " + list(wrapped) + "."
		c.do = "Remove what sets the alternatives, in the entry point or the image. To correct this container, run " +
			"iptables-wrapper install in it."
	}
	return c
}

// alternativeOf is the name in /etc/alternatives that a path leads through, "" if there is none.
func alternativeOf(path string) string {
	for _, hop := range link.Hops(path) {
		if filepath.Dir(hop) == "/etc/alternatives" {
			return hop
		}
	}
	return ""
}

// wrapper is the command of the wrapper in the directory of a switch.
func wrapper(directory string) string {
	if directory == "/usr/sbin" {
		return link.Wrapper
	}
	return directory + "/" + link.Wrapper
}

// install is what has a command run the wrapper.
func install(command string) string {
	option := ""
	directory := filepath.Dir(command)
	if directory != "/usr/sbin" {
		option = " --dir " + directory
	}
	return "Run iptables-wrapper install" + option + " in the image and, until it is rebuilt, in this container."
}

func (o *observation) notWrapped() *Finding {
	bypasses := func(n link.Name) bool { return n.Err == nil && !n.Wrapper && n.Switch == "" }
	bypassing := pathsOf(o.Names, bypasses)
	if len(bypassing) == 0 || len(o.refused) > 0 || o.found(wrongBackend) {
		return nil
	}
	c := o.bypass(o.Names[slices.IndexFunc(o.Names, bypasses)])
	found := Finding{
		Severity: warning,
		Text:     o.these(bypassing, "bypasses the wrapper", "bypass the wrapper"),
		Look:     c.look,
		Do:       c.do,
	}
	unknown := slices.ContainsFunc(o.Names, func(n link.Name) bool { return bypasses(n) && n.Backend == "" })
	switch {
	case unknown:
		found.Text += " Doctor could not find out which backend runs instead."
		found.Do += " A script that enters the host and runs the iptables there needs no wrapper."
	case o.known():
		found.Text += fmt.Sprintf(" What runs instead is %s: right on this host, and wrong on one that uses %s.",
			o.wanted(), o.wanted().Other())
	default:
		found.Text += fmt.Sprintf(" What runs instead is %s, whatever the host uses.", o.wanted())
	}
	return &found
}
