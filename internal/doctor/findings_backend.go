// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// Whether iptables runs the host's backend.

func (f *facts) wrongBackend() *Finding {
	found := Finding{Severity: problem, Look: []string{showEvidence}}
	host := f.Host.Now()
	right := f.Here.Backend
	if host.Conclusive {
		right = host.Mode
	}
	differing := f.names(func(n layout.Name) bool { return n.Mode != "" && n.Mode != right })
	uses := fmt.Sprintf("the host uses %s (%s). Neither sees the other's rules.", right, host.Because)
	switch {
	case f.Here.How == byVariable && f.Here.Backend == "":
		found.Text = fmt.Sprintf("Every call of iptables fails with status 2: IPTABLES_WRAPPER_MODE is %q, which is not "+
			"a backend.", f.variable)
		found.Look = []string{"env"}
		found.Do = "In the Pod's spec, set IPTABLES_WRAPPER_MODE to nft or legacy, or remove it."
	case host.Conclusive && f.Here.Backend == right.Other():
		cause, do := f.cause()
		found.Text = "iptables here runs " + string(f.Here.Backend) + ", and " + uses + " " + cause
		found.Look = append(found.Look, "ls -l "+f.Here.Client)
		found.Do = do
	case len(differing) > 0 && host.Conclusive:
		found.Text = f.these(differing, "run "+string(right.Other())) + " But " + uses
		found.Look = append(found.Look, "ls -l "+differing[0].Path)
		found.Do = f.install(differing[0].Path)
	case len(differing) > 0 && right != "":
		found.Text = f.these(differing, "run "+string(right.Other())) + " But iptables here runs " + string(right) + "."
		found.Look = append(found.Look, "ls -l "+differing[0].Path)
		found.Do = f.install(differing[0].Path)
	default:
		return f.failed(wrongBackend)
	}
	return &found
}

// cause says why iptables runs the wrong backend, and what helps.
func (f *facts) cause() (why, do string) {
	reset := "In this container, run iptables-wrapper reset" + dirFlag(f.place.Dir) + ", and restart the program that " +
		"makes the rules. Or delete the Pod: a new container decides again, unless its image or a volume has an answer " +
		"stored."
	switch f.Here.How {
	case bySwitch:
		return fmt.Sprintf("An earlier call or select stored %s in the switch, %s.", f.Here.Backend,
			f.place.Dir+"/"+layout.Switch), reset
	case byMemory:
		return fmt.Sprintf("This container remembers %s from an earlier call (%s).", f.Here.Backend, f.Host.Because), reset
	case byVariable:
		return "IPTABLES_WRAPPER_MODE is " + f.variable + ".", "In the Pod's spec, remove IPTABLES_WRAPPER_MODE, or set " +
			"it to " + string(f.Host.Now().Mode) + "."
	}
	return "iptables here is not wrapped: " + f.Here.Client + " leads to " + cmp.Or(f.Here.Program, "another program") +
		".", f.install(f.Here.Client)
}

// install is what has a command run the wrapper.
func (f *facts) install(command string) string {
	return "In the image, run iptables-wrapper install" + dirFlag(filepath.Dir(command)) + "."
}

// names are those of the commands that lead somewhere, and of which something is true.
func (f *facts) names(is func(layout.Name) bool) (all []layout.Name) {
	for _, n := range f.Names {
		if n.Err == nil && is(n) {
			all = append(all, n)
		}
	}
	return all
}

// these begins a sentence about some of the six commands.
func (f *facts) these(some []layout.Name, do string) string {
	if len(some) == len(f.Names) {
		return "The six commands in " + filepath.Dir(some[0].Path) + " " + do + "."
	}
	var paths []string
	for _, n := range some {
		paths = append(paths, n.Path)
	}
	return "Some of the six commands " + do + ": " + List(paths) + "."
}

func (f *facts) notWrapped() *Finding {
	bypassing := f.names(func(n layout.Name) bool { return !n.Wrapper && n.Switch == "" })
	if len(bypassing) == 0 || len(f.unstarted) > 0 || f.wrongBackend() != nil {
		return nil
	}
	found := Finding{
		Severity: warning,
		Text:     f.these(bypassing, "do not run the wrapper"),
		Look:     []string{"ls -l " + bypassing[0].Path},
		Do:       f.install(bypassing[0].Path),
	}
	unknown := f.names(func(n layout.Name) bool { return !n.Wrapper && n.Mode == "" })
	if len(unknown) > 0 {
		found.Text += " The program that they run did not say which backend it is."
		found.Do += " A script that enters the host and runs the iptables there needs no wrapper."
	} else {
		found.Text += " They run " + string(bypassing[0].Mode) + " on every host, whatever the host uses."
	}
	return &found
}
