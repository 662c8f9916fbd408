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
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// Whether iptables' program is there and starts, and how old it is.

const installBoth = "In the image, install iptables 1.8.8 or newer with both backends."

func (o *observation) noProgram() *Finding {
	directory := filepath.Dir(o.Here.Path)
	found := Finding{Severity: problem, Look: []string{"iptables --version"}, Do: installBoth}
	dangling := slices.IndexFunc(o.Names, func(n link.Name) bool { return n.Err != nil && !n.Missing })
	command, missing := o.missing()
	broken := o.broken()
	switch {
	case !slices.ContainsFunc(o.Names, func(n link.Name) bool { return !n.Missing }):
		found.Text = "There is no iptables in PATH or in " + directory + ": the image has none, or a volume covers it."
		found.Look = []string{"ls -l " + o.Here.Path, "printenv PATH"}
		found.Do = installBoth + " Then run iptables-wrapper install there."
	case dangling >= 0:
		found.Text, found.Look, found.Do = o.dangles(o.Names[dangling])
	case !o.inPath:
		found.Text = "Programs do not find iptables: it is in " + directory + ", which is not in PATH."
		found.Look = []string{"printenv PATH"}
		found.Do = "Add " + directory + " to PATH, in the image or in the Pod's spec."
	case o.wrong != nil: // see wrongBackend
		return nil
	case missing != "":
		found.Text = "iptables fails here: it should run " + string(o.wanted()) + ", whose program in this image is " +
			"missing or cannot be executed (" + command + ": " + missing + ")."
		found.Look = []string{command + " --version"}
	case o.found(notPermitted), o.found(kernel):
		return nil
	case broken == run.ErrHangs.Error():
		path := o.program(o.wanted()).Path
		found.Text = fmt.Sprintf("iptables hangs here: %s did not end in time.", path)
		found.Look = []string{"ls -l " + path}
		found.Do = "If that is a script, correct it. Otherwise look at the kernel's log on the node (dmesg)."
	case broken != "":
		path := o.program(o.wanted()).Path
		found.Text = fmt.Sprintf("iptables fails here: %s does not start (%s).", path, broken)
		found.Do = "In the image, install iptables for this architecture, 1.8.8 or newer, with its libraries."
	case o.said(noProgram) != nil:
		said := o.said(noProgram).finding()
		if o.said(noProgram).message.library {
			said.Text = fmt.Sprintf("The image lacks the library of the match %q, so rules with it fail. ",
				nameIn(o.said(noProgram).Line)) + o.said(noProgram).quote()
		}
		return said
	default:
		return o.unexplained()
	}
	return &found
}

// dangles is about a name that leads to nothing.
func (o *observation) dangles(n link.Name) (text string, look []string, do string) {
	dangling := pathsOf(o.Names, func(n link.Name) bool { return n.Err != nil && !n.Missing })
	text = o.these(dangling, "leads", "lead")
	text = strings.TrimSuffix(text, ".") + " to a file that is missing (" + n.Err.Error() + ")."
	const again = " iptables in the image again, and run iptables-wrapper install there."
	if n.Switch == "" {
		return text, []string{"ls -l " + n.Path}, "Install" + again
	}
	return text, []string{"ls -l " + n.Switch + "/" + link.Switch}, "If the image has iptables' programs, run " +
		wrapper(n.Switch) + " reset: then calls decide again. Otherwise install" + again
}

// missing says for which of the names that exist the wrapper finds no program, and why.
func (o *observation) missing() (name, why string) {
	for i, n := range o.Names {
		if n.Err == nil && n.Wrapper && o.calls[i].Error != "" {
			return n.Name, o.calls[i].Error
		}
	}
	return "", ""
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
	if p.Path == "" || p.Error == run.ErrRefused.Error() {
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
		if out.Err == nil || errors.Is(out.Err, run.ErrRefused) || known != "" || ofNFT {
			continue
		}
		said, _, _ := strings.Cut(out.Text(), "\n")
		printed := fmt.Sprintf("printed %q", said)
		if said == "" {
			printed = "printed nothing"
		}
		return &Finding{
			Severity: problem,
			Text:     fmt.Sprintf("iptables fails here (%v): %q %s.", out.Err, out.Command, printed),
			Look:     []string{out.Command},
			Do:       "Look at all that the command prints, and at the kernel's log on the node (dmesg).",
		}
	}
	return nil
}

// old reports whether iptables-nft here loses parts of rules.
func (o *observation) old() bool {
	return parseVersion(o.program(detect.NFT).Version).losesRules()
}

// oldIptables is a problem if iptables cannot list a table in which nft has made nothing: then a newer iptables has.
func (o *observation) oldIptables() *Finding {
	if o.wanted() != detect.NFT || !o.old() {
		return nil
	}
	p := o.program(detect.NFT)
	release := parseVersion(p.Version)
	for _, t := range o.ruleset.tables {
		failure := o.failure(t)
		if failure != "" && len(t.chainsOf(madeByNFT)) == 0 {
			return &Finding{
				Severity: problem,
				Text: fmt.Sprintf("%s is version %v and cannot read a rule that a newer iptables has made. %s", p.Path,
					release, failure),
				Look: []string{t.save(), "iptables --version"},
				Do:   "In the image, install iptables as new as the node's, with both backends.",
			}
		}
	}
	return &Finding{
		Severity: warning,
		Text: fmt.Sprintf("%s is version %v. When it writes a table back, it loses conditions of rules that %v or "+
			"newer has made: a DROP of some packets becomes a DROP of all.", p.Path, release, firstFaithful),
		Look: []string{"iptables --version"},
		Do:   installBoth,
	}
}
