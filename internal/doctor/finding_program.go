// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// Whether iptables' program is there and starts, and how old it is.

const installBoth = "In the image, install iptables 1.8.8 or newer with both backends."

func (o *observation) noProgram() *Finding {
	directory := filepath.Dir(o.Here.Path)
	found := Finding{Severity: problem, Look: []string{"ls -l " + directory}, Do: installBoth}
	dangling := pathsOf(o.Names, func(n link.Name) bool { return n.Err != nil && !n.Missing })
	missing := o.missing()
	switch {
	case !slices.ContainsFunc(o.Names, func(n link.Name) bool { return !n.Missing }):
		found.Text = "There is no iptables here: the image has none, or a volume covers " + directory + "."
		found.Do = installBoth + " Then run iptables-wrapper install there."
	case len(dangling) > 0:
		found.Text = o.these(dangling, "leads to nothing", "lead to nothing")
		found.Look = []string{"ls -l " + dangling[0]}
		found.Do = "Install iptables in the image again, then run iptables-wrapper install there. If the image still " +
			"has a program of the other backend, iptables-wrapper reset makes calls decide again."
	case !o.inPath:
		found.Text = "No program finds iptables: it is in " + directory + ", which is not in PATH."
		found.Do = "Add " + directory + " to PATH."
	case o.wrong != nil: // see wrongBackend
		return nil
	case missing != "":
		found.Text = "iptables fails here, with status 127 or 126: it should run " + string(o.wanted()) +
			", and the image's program for that is missing or cannot be executed (" + missing + ")."
	case o.found(notPermitted), o.found(kernel):
		return nil
	case o.broken() != "":
		found.Text = "iptables fails here: its program for " + string(o.wanted()) + " does not work " +
			"(" + o.broken() + ")."
	case o.said(noProgram) != nil:
		said := o.said(noProgram).finding()
		if o.said(noProgram).message.library {
			said.Text = "Rules with the match " + nameIn(o.said(noProgram).Line) + " fail here: its library is not " +
				"in the image. " + o.said(noProgram).quote()
		}
		return said
	default:
		return o.unexplained()
	}
	return &found
}

// missing says why the wrapper finds no program for one of the names that exist, "" if it does.
func (o *observation) missing() string {
	for i, n := range o.Names {
		if n.Err == nil && n.Wrapper && o.calls[i].Error != "" {
			return n.Name + ": " + o.calls[i].Error
		}
	}
	return ""
}

// program is iptables' own program of a backend.
func (o *observation) program(b detect.Backend) Program {
	for _, p := range o.Programs {
		if p.Backend == b {
			return p
		}
	}
	return Program{}
}

// broken is what is wrong with the program that should run, as far as it was started.
func (o *observation) broken() string {
	p := o.program(o.wanted())
	if p.Path == "" || p.Error == start.ErrRefused.Error() {
		return ""
	}
	return p.Error
}

// unexplained is about a command that failed for a reason that no message explains.
func (o *observation) unexplained() *Finding {
	for _, out := range o.runs {
		_, known := find(out.Text())
		ofNFT := slices.ContainsFunc(o.ruleset.tables, func(t table) bool {
			return out.Command == t.save() && len(t.chainsOf(madeByNFT)) > 0
		})
		if out.Err == nil || errors.Is(out.Err, start.ErrRefused) || known != "" || ofNFT {
			continue
		}
		said, _, _ := strings.Cut(out.Text(), "\n")
		return &Finding{
			Severity: problem,
			Text:     fmt.Sprintf("iptables fails here (%v): %q printed %q.", out.Err, out.Command, said),
			Look:     []string{out.Command},
			Do:       "Run it by hand, and look at what it prints and at the kernel's log (dmesg).",
		}
	}
	return nil
}

// old reports whether iptables-nft here loses parts of rules.
func (o *observation) old() bool {
	return iptables.ParseRelease(o.program(detect.NFT).Version).LosesRules()
}

// oldIptables is a problem if iptables cannot list a table in which nft has made nothing: then a newer iptables has.
func (o *observation) oldIptables() *Finding {
	if o.wanted() != detect.NFT || !o.old() {
		return nil
	}
	p := o.program(detect.NFT)
	release := iptables.ParseRelease(p.Version)
	for _, t := range o.ruleset.tables {
		failure := o.failure(t)
		if failure != "" && len(t.chainsOf(madeByNFT)) == 0 {
			return &Finding{
				Severity: problem,
				Text: fmt.Sprintf("iptables cannot read a rule that a newer iptables has made: %s %s is version %v.",
					failure, p.Path, release),
				Look: []string{t.save(), "iptables --version"},
				Do:   installBoth,
			}
		}
	}
	return &Finding{
		Severity: warning,
		Text: fmt.Sprintf("A DROP with a condition can become a DROP without one: %s is version %v. When it writes a "+
			"table back, it loses parts of the rules that %v or newer has made.", p.Path, release, iptables.Faithful),
		Look: []string{"iptables --version"},
		Do:   installBoth,
	}
}
