// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Whether iptables runs the host's backend, and what the other one has.

func (f *facts) wrongBackend() *Finding {
	found := Finding{Severity: problem, Look: []string{showEvidence, "ls -l " + f.place.Dir + "/iptables*"}}
	differing := f.differing()
	host := f.Host.now()
	if f.variableIsWrong() {
		found.Text = fmt.Sprintf("IPTABLES_WRAPPER_MODE is %q, which is no backend: every call of iptables fails with "+
			"status 2.", f.variable)
		found.Look = []string{"env"}
		found.Do = "In the Pod's spec, set it to nft or legacy, or remove it."
		return &found
	}
	switch {
	case f.Here.Backend != "" && f.Host.uses(f.Here.Backend.Other()):
		found.Text = fmt.Sprintf("iptables here runs %s, and the host uses %s (%s). So the host's programs do not "+
			"see its "+
			"rules, and it does not see theirs.", f.Here.Backend, host.Mode, host.Because)
	case len(differing) > 0 && host.Conclusive:
		found.Text = fmt.Sprintf("%d of the six commands run %s, and the host uses %s (%s): %s.", len(differing),
			host.Mode.Other(), host.Mode, host.Because, list(shown(differing)))
		found.Do = f.wrap()
		return &found
	case len(differing) > 0:
		found.Text = fmt.Sprintf("iptables here runs %s, and %d of the six commands run the other backend: %s.",
			f.Here.Backend, len(differing), list(shown(differing)))
		found.Do = f.wrap()
		return &found
	default:
		if said, printed := f.failed(wrongBackend); printed {
			return said.finding()
		}
		return nil
	}
	cause, do := f.cause()
	found.Text += " " + cause
	found.Do = do
	return &found
}

// variableIsWrong reports that the variable is no backend, and that calls run the wrapper, which refuses that.
func (f *facts) variableIsWrong() bool {
	return f.variable != "" && !evidence.Mode(f.variable).Valid() && f.Here.How == byVariable
}

// cause says why iptables runs the wrong backend, and what helps.
func (f *facts) cause() (why, do string) {
	const restart = " Then restart the program that makes the rules. Or replace the Pod: a new container decides again."
	reset := "In this container, run iptables-wrapper reset" + f.dirFlag() + "." + restart
	switch f.Here.How {
	case bySwitch:
		why = "An earlier call or select stored " + string(f.Here.Backend) + " in the switch, " + f.place.Dir +
			"/iptables-current."
		if f.brought {
			why += " The switch is older than this container."
			reset += " A new container would be wrong again if the image or a volume brings the switch: run " +
				"iptables-wrapper reset at the end of the image's build, or fill the volume again."
		}
		return why, reset
	case byMemory:
		return "This container remembers " + string(f.Here.Backend) + " from an earlier call " +
			"(" + f.Host.Because + ").", reset
	case byVariable:
		return "IPTABLES_WRAPPER_MODE is " + f.variable + ".", "In the Pod's spec, remove IPTABLES_WRAPPER_MODE, or " +
			"set it to " +
			string(f.Host.now().Mode) + "."
	}
	why = "It does not run the wrapper: " + f.Here.Client + " leads to " + cmp.Or(f.Here.Program, "another "+
		"program") + "."
	if f.wrapperIn != "" {
		why = "PATH finds " + f.Here.Client + " first, and the wrapper is in " + f.wrapperIn + "."
	}
	return why, f.wrap()
}

// wrap is what puts the wrapper in front of the commands.
func (f *facts) wrap() string {
	text := "In the image, run iptables-wrapper install" + f.dirFlag()
	if slices.ContainsFunc(f.Names, func(n Name) bool { return n.other && !n.Wrapper }) {
		text += " --force"
	}
	return text + "."
}

// differing are the commands that run another backend than the host where that is known, else than iptables.
func (f *facts) differing() (names []string) {
	right := f.Here.Backend
	if f.Host.now().Conclusive {
		right = f.Host.now().Mode
	}
	for _, n := range f.Names {
		if n.Backend != "" && right != "" && n.Backend != right {
			names = append(names, n.Name)
		}
	}
	return names
}

func (f *facts) notWrapped() *Finding {
	var names []string
	silent := false
	for _, n := range f.Names {
		bypasses := n.Error == "" && !n.Wrapper && !n.Switched
		if bypasses && (n.Backend != "" || n.silent) {
			names = append(names, n.Name)
			silent = silent || n.silent
		}
	}
	if len(names) == 0 || f.wrongBackend() != nil {
		return nil
	}
	found := Finding{
		Severity: warning,
		Text: fmt.Sprintf("%d of the six commands in %s do not run the wrapper: %s. ", len(names), f.place.Dir,
			list(shown(names))),
		Look: []string{"ls -l " + f.place.Dir + "/iptables*"},
		Do:   f.wrap(),
	}
	if silent {
		found.Text += "What they run is not iptables, or did not say which backend it runs."
		found.Do += " Leave a script that enters the host and runs the iptables there."
	} else {
		found.Text += "They run " + string(f.Names[slices.IndexFunc(f.Names, func(n Name) bool {
			return n.Name == names[0]
		})].Backend) + " on every host, whatever that uses."
	}
	return &found
}
