// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package here finds out what a call of iptables runs in this container, for detect and doctor.
package here

import (
	"cmp"
	"fmt"
	osexec "os/exec"
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// How is what makes iptables run a backend.
type How string

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
	Err     error          `json:"-"`               // the same
}

// nothing is what runs if there is an error.
func nothing(path string, err error) Here {
	return Here{Path: path, How: Nothing, Error: err.Error(), Err: err}
}

// Iptables returns the path of the iptables that a shell would call: the first in PATH, otherwise /usr/sbin/iptables.
func Iptables() string {
	path, err := osexec.LookPath("iptables")
	if err != nil || !filepath.IsAbs(path) {
		return "/usr/sbin/iptables"
	}
	return path
}

// Of returns what a call by a name runs in this environment. host is the result of detect, held the recorded backend.
func Of(n link.Command, host detect.Result, held detect.Backend) Here {
	h := Here{Path: n.Path, Backend: n.Backend, Program: n.ResolvesTo}
	wanted, err := call.Wanted()
	switch {
	case n.Err != nil:
		return nothing(n.Path, n.Err)
	case n.Switch != "" && n.Backend != "":
		h.How = Stored
		return h
	case !n.Wrapper:
		h.How = NotWrapped
		return h
	case err != nil:
		return nothing(n.Path, err)
	}
	r := detect.Decide(host.Evidence, held)
	h.How = Asked
	switch {
	case wanted != "":
		h.How = Variable
		r = detect.Result{Backend: wanted, Certain: true} // never the other backend
	case r.Reason == detect.Held:
		h.How = Recorded
	}
	backend, program, err := call.Find(r, n.Name, filepath.Dir(n.ResolvesTo))
	if err != nil && h.How == Variable {
		err = fmt.Errorf("%w (%s: %w)", err, wanted, remedy.ErrByVariable) // as the call prints it
	}
	if err != nil {
		return nothing(n.Path, err)
	}
	h.Backend, h.Program = backend, program.Path
	return h
}

// String returns one line for people: "nft (/usr/sbin/xtables-nft-multi, stored in the switch)".
func (h Here) String() string {
	if h.Error != "" {
		return "nothing (" + h.Error + ")"
	}
	why := map[How]string{
		Stored:     "stored in the switch",
		Variable:   "by " + call.Variable,
		Recorded:   "recorded: already in use here",
		Asked:      "decided at each call",
		NotWrapped: "not wrapped",
	}[h.How]
	return cmp.Or(string(h.Backend), "an unknown backend") + " (" + h.Program + ", " + why + ")"
}
