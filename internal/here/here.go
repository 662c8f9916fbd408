// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package here says what the command iptables runs in this container, in which network, and why.
package here

import (
	"cmp"
	"errors"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// What decides which program "iptables" is here.
const (
	Switch     = "switch"          // an earlier call or select stored the backend
	Remembered = "remembered"      // the wrapper, which follows this container's memory
	Variable   = "variable"        // the wrapper, which follows IPTABLES_WRAPPER_MODE
	EachCall   = "each-call"       // the wrapper, which detects the backend at each call
	NotWrapped = "not-the-wrapper" // an iptables program, not through the switch, or something else
	Missing    = "missing"         // nothing
)

// Here is what the command "iptables" runs in this container.
type Here struct {
	Backend detect.Mode `json:"backend,omitempty"` // none if it is not an iptables program
	Program string      `json:"program,omitempty"`
	How     string      `json:"how"`
	Differs bool        `json:"differs"` // the host is known to use the other backend
	Error   string      `json:"error,omitempty"`
}

// String is Here in one clause: "nft (/usr/sbin/xtables-nft-multi)".
func (h Here) String() string {
	if h.How == Missing {
		return "missing"
	}
	text := string(cmp.Or(h.Backend, "unknown")) + " (" + cmp.Or(h.Program, "no such program")
	switch h.How {
	case Remembered:
		text += ", remembered"
	case Variable:
		text += ", by " + programs.ModeVariable
	case EachCall:
		text += ", detected at each call"
	}
	return text + ")"
}

// Look returns what iptables in the directory runs, and what the host is known to use, whatever the variable says.
// asked is what Ask has answered to the query.
func Look(n layout.Names, dir string, q detect.Query, asked detect.Result) (h Here, host detect.Result) {
	h = runs(n.Look(dir)[0], q.Override, asked)
	if h.decides() {
		program, err := n.Find(dir, h.Backend, "iptables")
		h.Program = program
		if err != nil {
			h.Error = err.Error()
		}
	}
	host = withoutVariable(n, dir, q, asked, h.How)
	h.Differs = host.Conclusive && h.Backend != "" && h.Backend != host.Mode
	return h, host
}

// runs says what the command runs: a program, or the wrapper, which decides by the variable, the memory and the host.
func runs(command layout.Status, override detect.Mode, asked detect.Result) Here {
	h := Here{Backend: command.Mode, Program: command.ResolvesTo, How: NotWrapped, Error: command.Error}
	switch {
	case command.Error != "":
		h.How = Missing
	case command.Switched && command.Mode != "":
		h.How = Switch
	case !command.Wrapper: // it stays NotWrapped
	case override != "":
		h.Backend = override
		h.How = Variable
	case asked.Reason == detect.Remembered:
		h.Backend = asked.Mode
		h.How = Remembered
	default:
		h.Backend = asked.Mode
		h.How = EachCall
	}
	return h
}

// decides reports whether the wrapper runs, and finds the program of the backend that it decides for.
func (h Here) decides() bool {
	return h.How == Variable || h.How == Remembered || h.How == EachCall
}

// withoutVariable returns what the host is known to use, whatever the variable says. A call that obeys the variable
// ignores the memory, so that says nothing either.
func withoutVariable(n layout.Names, dir string, q detect.Query, asked detect.Result, how string) detect.Result {
	q.Override = ""
	if how == Variable {
		q.Installed = installed(n, dir)
		return answer(n, q)
	}
	if asked.Reason == detect.Override {
		asked = Ask(n, dir, q)
	}
	return recounted(q, asked, func(q detect.Query) detect.Result { return answer(n, q) })
}

// recounted compares what the container remembers with what the host has now. What kubelet's chains said stays: a
// client may have flushed them, and then only leftovers in the other backend remain. The rules that a guess wrote
// support the guess. So only a certain answer that contradicts the memory counts.
//
// With Query.Everything, asked has all the evidence. Otherwise the memory has left most of it unasked.
func recounted(q detect.Query, asked detect.Result, count func(detect.Query) detect.Result) detect.Result {
	if asked.Reason != detect.Remembered || asked.Conclusive && asked.Remembered.Reason.Kubelet() {
		return asked
	}
	now := count(detect.Query{})
	if !now.Conclusive || now.Mode == asked.Mode {
		return asked
	}
	if q.Everything {
		now.Evidence = asked.Evidence
		now.Conflicts = asked.Conflicts
	}
	return now
}

// Ask answers the query about the host, as a call of iptables in the directory would: with what the container
// remembers.
func Ask(n layout.Names, dir string, q detect.Query) detect.Result {
	return answer(n, known(n, dir, q))
}

// answer answers a query. Whether it was doubted does not matter here.
func answer(n layout.Names, q detect.Query) detect.Result {
	r, _ := n.Memory().Answer(q)
	return r
}

// installed is the backend for which a call of iptables in the directory has a program, if there is just one.
func installed(n layout.Names, dir string) detect.Mode {
	return n.Self.FindBoth(n.Tree, programs.Join(dir, "iptables"), "iptables").Only()
}

// known returns the query with what a call of iptables in the directory knows before it asks the kernel.
func known(n layout.Names, dir string, q detect.Query) detect.Query {
	q.Installed = installed(n, dir)
	if q.Override == "" {
		m := n.Memory()
		q.Remembered = obeyed(n, dir, m.Remembered())
		q.Home = obeyed(n, dir, m.Home())
	}
	return q
}

// obeyed is what the container remembers, as a call of iptables in the directory would follow it: nothing if the
// backend's program is missing there. Where the switch has moved, it says more than a memory that contradicts it.
func obeyed(n layout.Names, dir string, remembered detect.Memory) detect.Memory {
	_, err := n.Find(dir, remembered.Mode, "iptables")
	command := n.Look(dir)[0]
	moved := command.Switched && command.Mode != "" && command.Mode != remembered.Mode
	if moved || errors.Is(err, programs.ErrMissing) {
		return detect.Memory{}
	}
	return remembered
}
