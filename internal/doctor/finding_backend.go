// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// Whether iptables runs the host's backend.

func (o *observation) wrongBackend() *Finding {
	right := o.wanted()
	found := Finding{Severity: problem, Look: []string{showEvidence}}
	uses := fmt.Sprintf("the host uses %s (%s). Neither sees the other's rules.", right, o.Host.Because)
	differing := o.differing(right)
	switch {
	case o.wrong != nil:
		found.Text = "Every call of iptables fails with status 2: " + o.wrong.Error() + "."
		found.Look = []string{"printenv " + call.Variable}
		found.Do = "In the Pod's spec, set " + call.Variable + " to nft or legacy, or remove it."
	case o.known() && o.Here.Backend == right.Other():
		why, do := o.cause(o.Names[0], o.Here)
		found.Text = "iptables here runs " + string(o.Here.Backend) + ", and " + uses + " " + why
		found.Look = append(found.Look, "ls -l "+o.Here.Path)
		found.Do = do
	case len(differing) > 0 && right != "":
		uses = "iptables here runs " + string(right) + "."
		if o.known() {
			uses = fmt.Sprintf("the host uses %s (%s).", right, o.Host.Because)
		}
		found.Text = o.these(differing, "runs "+string(right.Other()), "run "+string(right.Other())) + " But " + uses
		found.Look = append(found.Look, "ls -l "+differing[0])
		for i, n := range o.Names {
			if n.Path == differing[0] {
				_, found.Do = o.cause(n, o.calls[i])
			}
		}
	default:
		return nil
	}
	return &found
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

// cause says why a name runs the wrong backend, and what helps.
func (o *observation) cause(n link.Name, h here.Here) (why, do string) {
	switch {
	case h.How == here.Stored && o.Network.Process1 == detect.No:
		return fmt.Sprintf("%s is stored in the switch of this container, %s, and this is not the network of the "+
				"container's "+
				"process 1: it looks like an agent that enters Pods' networks.", h.Backend, n.Switch+"/"+link.Switch),
			"In the agent's image, make the six names symbolic links straight to iptables-wrapper, without " +
				"" + link.Switch +
				": then nothing is stored, and each call asks the network that it is in."
	case h.How == here.Stored:
		return fmt.Sprintf("An earlier call or select stored %s in the switch, "+
				"%s.", h.Backend, n.Switch+"/"+link.Switch),
			"In this container, run " + wrapper(n.Switch) + " reset, and restart the program that makes the rules. " +
				"Or delete the Pod: a new container decides again, unless its image or a volume has an answer stored."
	case h.How == here.Recorded:
		return fmt.Sprintf("%s is what ran here first, by a guess.", h.Backend),
			"In this container, run iptables-wrapper reset, and restart the program that makes the rules. Or restart " +
				"the container."
	case h.How == here.Variable:
		return call.Variable + " is " + string(o.variable) + ".", "In the Pod's spec, remove " + call.Variable +
			", or set it to " + string(o.Host.Backend) + "."
	}
	alternative := alternativeOf(n.Path)
	if alternative != "" {
		why = "iptables here is not wrapped: " + alternative + " leads to " + n.ResolvesTo + ". Somebody has set " +
			"this alternative, perhaps an entry point, after the wrapper was installed."
		wrapped := pathsOf(o.Names, func(n link.Name) bool { return n.Wrapper || n.Switch != "" })
		if len(wrapped) > 0 {
			why += " Still wrapped: " + list(wrapped) + "."
		}
		return why, "Remove what sets the alternatives from the entry point. This container is right again after " +
			"iptables-wrapper install."
	}
	return "iptables here is not wrapped: " + n.Path + " leads to " + cmp.Or(n.ResolvesTo, "another program") + ".",
		install(n.Path)
}

// alternativeOf is the name in /etc/alternatives that a path leads through, "" if there is none.
func alternativeOf(path string) string {
	for hop := range link.Hops(path) {
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
	directory := filepath.Dir(command)
	if directory == "/usr/sbin" {
		return "In the image, run iptables-wrapper install."
	}
	return "In the image, run iptables-wrapper install --dir " + directory + "."
}

func (o *observation) notWrapped() *Finding {
	bypasses := func(n link.Name) bool { return n.Err == nil && !n.Wrapper && n.Switch == "" }
	bypassing := pathsOf(o.Names, bypasses)
	if len(bypassing) == 0 || len(o.refused) > 0 || o.found(wrongBackend) {
		return nil
	}
	found := Finding{
		Severity: warning,
		Text:     o.these(bypassing, "does not run the wrapper", "do not run the wrapper"),
		Look:     []string{"ls -l " + bypassing[0]},
		Do:       install(bypassing[0]),
	}
	unknown := pathsOf(o.Names, func(n link.Name) bool { return bypasses(n) && n.Backend == "" })
	if len(unknown) > 0 {
		found.Text += " What runs instead did not say which backend it is."
		found.Do += " A script that enters the host and runs the iptables there needs no wrapper."
	} else {
		found.Text += " What runs instead is " + string(o.wanted()) + " on every host, whatever the host uses."
	}
	return &found
}
