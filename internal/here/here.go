// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package here finds out what a call of iptables runs in this container, for detect and doctor.
package here

import (
	osexec "os/exec"
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// How is what makes iptables run a backend.
type How string

// The values of How.
const (
	Stored     How = "stored"      // the switch points to the program
	Variable   How = "variable"    // the wrapper, by IPTABLES_WRAPPER_BACKEND
	Recorded   How = "recorded"    // the wrapper, by the record of this network namespace
	Asked      How = "asked"       // the wrapper, which asks the kernel at each call
	NotWrapped How = "not-wrapped" // another program, without the wrapper
	Nothing    How = "nothing"     // there is no iptables, or it cannot be run
)

// Here is what a call of iptables runs.
type Here struct {
	Path    string         `json:"path,omitempty"`    // of the iptables that is called
	Backend detect.Backend `json:"backend,omitempty"` // "" if it is not known
	Program string         `json:"program,omitempty"` // the path of the program that runs
	How     How            `json:"how"`
	Error   string         `json:"error,omitempty"` // why nothing runs
}

// Iptables returns the path of the iptables that a shell would call: the first in PATH, otherwise /usr/sbin/iptables.
func Iptables() string {
	path, err := osexec.LookPath("iptables")
	if err != nil || !filepath.IsAbs(path) {
		return "/usr/sbin/iptables"
	}
	return path
}

// Of returns what a call by a name runs. host is the result of detect, held the recorded backend. wanted and wrong are
// the results of call.Wanted.
func Of(n link.Name, host detect.Result, held, wanted detect.Backend, wrong error) Here {
	h := Here{Path: n.Path, How: Nothing}
	if n.Err != nil {
		h.Error = n.Err.Error()
		return h
	}
	h.Backend = n.Backend
	h.Program = n.ResolvesTo
	switch {
	case n.Switch != "" && n.Backend != "":
		h.How = Stored
		return h
	case !n.Wrapper:
		h.How = NotWrapped
		return h
	case wrong != nil:
		return Here{Path: n.Path, How: Nothing, Error: wrong.Error()}
	}
	dir := filepath.Dir(n.ResolvesTo)
	r := detect.Decide(host.Evidence, held)
	var program exec.Program
	var err error
	switch {
	case wanted.Valid():
		h.How, h.Backend = Variable, wanted
		program, err = exec.Find(wanted, n.Name, dir)
	case r.Reason == detect.Held:
		h.How, h.Backend = Recorded, held
		program, err = exec.Find(held, n.Name, dir)
	default:
		h.How = Asked
		h.Backend, program, err = call.Find(r, n.Name, dir)
	}
	h.Program = program.Path
	if err != nil {
		h.Error = err.Error()
	}
	return h
}

// Look returns what a call of iptables runs. host is the result of detect.
func Look(host detect.Result) Here {
	wanted, wrong := call.Wanted()
	record, _ := link.OpenRecord() // without it, nothing is recorded
	return Of(link.LookAt(Iptables()), host, record.Read(), wanted, wrong)
}

// String returns one line for people: "nft (/usr/sbin/xtables-nft-multi, stored in the switch)".
func (h Here) String() string {
	if h.Error != "" {
		return "nothing (" + h.Error + ")"
	}
	why := map[How]string{
		Stored:     "stored in the switch",
		Variable:   "by " + call.Variable,
		Recorded:   "recorded: it ran here first",
		Asked:      "decided at each call",
		NotWrapped: "not wrapped",
	}[h.How]
	backend := string(h.Backend)
	if backend == "" {
		backend = "an unknown backend"
	}
	return backend + " (" + h.Program + ", " + why + ")"
}
