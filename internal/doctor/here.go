// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// How says what decides which program "iptables" is here.
type How string

// What a name can resolve to.
const (
	Switch     How = "switch"          // an earlier call or select stored the mode
	Remembered How = "remembered"      // the wrapper, which follows this container's memory
	Variable   How = "variable"        // the wrapper, which follows IPTABLES_WRAPPER_MODE
	EachCall   How = "each call"       // the wrapper, which detects the mode at each call
	NotWrapped How = "not the wrapper" // an iptables program, not through the switch, or something else
	Missing    How = "missing"         // nothing
)

// Here is what the command "iptables" runs in this container.
type Here struct {
	Backend detect.Mode `json:"backend,omitempty"` // none if it is not an iptables program
	Program string      `json:"program,omitempty"`
	How     How         `json:"how"`
	Differs bool        `json:"differs"` // the host is known to use the other backend
	Error   string      `json:"error,omitempty"`
}

// String is Here in one clause: "nft (/usr/sbin/xtables-nft-multi)".
func (h Here) String() string {
	what, program := string(h.Backend), h.Program
	if what == "" {
		what = "unknown"
	}
	if program == "" {
		program = "no such program"
	}
	switch h.How {
	case Missing:
		return "missing"
	case Remembered:
		program += ", remembered"
	case Variable:
		program += ", by " + programs.ModeVariable
	case EachCall:
		program += ", detected at each call"
	}
	return fmt.Sprintf("%s (%s)", what, program)
}

// Look returns what iptables in the directory runs: through the links, or through the wrapper, which decides by the
// variable, the memory and the host.
func Look(w links.Wrapper, dir string, variable, remembered detect.Mode, host detect.Result) Here {
	s := w.Look(dir)[0] // iptables
	h := Here{Backend: s.Mode, Program: s.ResolvesTo, How: NotWrapped, Error: s.Error}
	switch {
	case s.Error != "":
		h.How = Missing
	case s.Switched && s.Mode != "":
		h.How = Switch
	case s.Wrapper:
		h = wrapped(w, dir, variable, remembered, host)
	}
	h.Differs = host.Conclusive && h.Backend != "" && h.Backend != host.Mode
	return h
}

func wrapped(w links.Wrapper, dir string, variable, remembered detect.Mode, host detect.Result) Here {
	h := Here{Backend: host.Mode, How: EachCall}
	switch {
	case variable != "":
		h.Backend, h.How = variable, Variable
	case remembered != "" && !byKubelet(host):
		h.Backend, h.How = remembered, Remembered
	}
	program, err := w.FindIn(dir, h.Backend, "iptables")
	h.Program = program
	if err != nil {
		h.Error = err.Error()
	}
	return h
}

func byKubelet(r detect.Result) bool {
	return r.Reason == detect.KubeletHint || r.Reason == detect.KubeletCanary
}

// Installed is the only backend whose programs are in the directory, or are found from there; "" if both or neither are.
func Installed(w links.Wrapper, dir string) detect.Mode {
	_, _, only := w.FindBoth(dir, "iptables")
	return only
}

// Ask answers the query about the host. What this container remembers is not evidence about the host, but rules that
// it wrote itself are none either: where the rule count says what the memory says, or nothing is proven, the answer is
// the memory's, and not conclusive.
func Ask(q detect.Query, remembered detect.Mode) detect.Result {
	r := q.Run()
	if remembered != "" && !byKubelet(r) && !(r.Conclusive && r.Mode != remembered) {
		r.Mode, r.Reason, r.Conclusive = remembered, detect.Remembered, false
	}
	return r
}

// Check is the question of a liveness probe: does iptables here run the host's backend? It is false only where both
// are known and differ, or where iptables cannot be run at all; a new container may cure these. The line says why.
func Check(host detect.Result, h Here) (ok bool, line string) {
	switch {
	case h.Error != "":
		return false, "iptables cannot be run here: " + h.Error
	case h.Differs:
		return false, fmt.Sprintf("iptables in this container is %s, but the host uses %s", h, host)
	case h.Backend == "":
		return false, fmt.Sprintf("iptables in this container is %q, which is not iptables", h.Program)
	case !host.Conclusive:
		return true, fmt.Sprintf("iptables in this container is %s; the host's backend is not certain: %s", h, host.Uncertainty())
	}
	return true, fmt.Sprintf("iptables in this container is %s, and the host uses %s", h, host)
}
