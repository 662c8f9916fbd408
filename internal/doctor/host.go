// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Host is what the host uses, as far as this network namespace shows it. In JSON, it begins with the decision.
type Host struct {
	evidence.Result
	Uncertainty string     `json:"uncertainty,omitempty"` // why it is not certain, one clause
	Conflict    string     `json:"conflict,omitempty"`    // what contradicts it, one clause
	Evidence    []Evidence `json:"evidence"`              // of each backend and family

	Contradicts evidence.Decision `json:"-"` // the host's certain answer, if it contradicts what is remembered
}

// Evidence is what is known of one backend and family.
type Evidence struct {
	Backend evidence.Mode `json:"backend"`
	Family  string        `json:"family"` // "IPv4", "IPv6"
	evidence.About
	Error string `json:"error,omitempty"`
}

// Host answers what the host uses, as a call in this place would: with what the container remembers, unless the query
// overrides it. What is remembered is held against the host: if the host's certain answer is the other backend, nothing
// is certain, and both are named.
func (p Place) Host(q evidence.Query) Host {
	q.Installed = p.find("iptables").Only()
	if q.Override == "" {
		q.Remembered = p.Memory.Read()
	}
	h := Host{Result: q.Ask()}
	if h.Reason == evidence.Remembered {
		q.Remembered = evidence.Decision{}
		now := q.Ask()
		if now.Conclusive && now.Mode != h.Mode {
			h.Contradicts = now.Decision
			h.Conclusive = false
		}
	}
	h.Uncertainty = h.Result.Uncertainty()
	if h.Contradicts.Mode != "" {
		h.Uncertainty = "the host now uses " + h.Contradicts.String()
	}
	h.Conflict = h.Result.Conflict()
	for _, mode := range evidence.Modes() {
		for i, about := range h.Of(mode) {
			e := Evidence{Backend: mode, Family: evidence.Family(i).String(), About: about}
			if about.Err != nil {
				e.Error = about.Err.Error()
			}
			h.Evidence = append(h.Evidence, e)
		}
	}
	return h
}

// String is the answer in one line: "nft (certain: chain KUBE-IPTABLES-HINT is in nft's mangle table (IPv4))".
func (h Host) String() string {
	if h.Conclusive {
		return string(h.Mode) + " (certain: " + h.Because + ")"
	}
	why := h.Because
	if h.Err() != nil || h.Reason == evidence.Default {
		why = h.Uncertainty // "no evidence" would be wrong where none could be read
	}
	text := string(h.Mode) + " (not certain: " + why
	if h.Contradicts.Mode != "" {
		text += "; " + h.Uncertainty
	}
	return text + ")"
}

// Now is what the host uses now, whatever is remembered.
func (h Host) Now() evidence.Decision {
	if h.Contradicts.Mode != "" {
		return h.Contradicts
	}
	return h.Decision
}

// What decides which program runs as iptables.
const (
	bySwitch     = "switch"      // a call or select stored the backend there
	byMemory     = "remembered"  // the wrapper, by what this container remembers
	byVariable   = "variable"    // the wrapper, by IPTABLES_WRAPPER_MODE
	byEachCall   = "each-call"   // the wrapper, by what it finds at each call
	byNotWrapped = "not-wrapped" // a program of iptables, or something else, without the wrapper
	byNothing    = "missing"
)

// Here is what iptables runs in a place.
type Here struct {
	Client  string        `json:"client,omitempty"`  // the iptables that is called
	Backend evidence.Mode `json:"backend,omitempty"` // "" if it is not known
	Program string        `json:"program,omitempty"` // the program that it becomes
	How     string        `json:"how"`
	Error   string        `json:"error,omitempty"`
}

// Here answers what a call would run, now.
func (p Place) Here(h Host) Here {
	here := Here{Client: p.Client, How: byNothing}
	if len(p.Names) == 0 {
		here.Error = "no such directory: " + p.Dir
		return here
	}
	name := p.Names[0]
	mode := evidence.Mode(variable())
	here.Program = name.ResolvesTo
	here.Backend = name.Mode
	switch {
	case name.Err != nil:
		here.Error = name.Err.Error()
		return here
	case name.Switch != "" && name.Mode != "":
		here.How = bySwitch
		return here
	case !name.Wrapper:
		here.How = byNotWrapped
		return here
	case mode != "":
		here.How = byVariable
	case h.Reason == evidence.Remembered:
		here.How = byMemory
	default:
		here.How = byEachCall
	}
	here.Backend = cmp.Or(mode, h.Mode)
	if !here.Backend.Valid() {
		here.Backend = ""
		here.Error = "IPTABLES_WRAPPER_MODE is not one of auto, nft, legacy"
		return here
	}
	program := p.find("iptables")[here.Backend]
	here.Program = program.Path
	if program.Err != nil {
		here.Error = program.Err.Error()
	}
	return here
}

// variable is the value of IPTABLES_WRAPPER_MODE; "": it leaves the decision to the wrapper.
func variable() string {
	value := os.Getenv("IPTABLES_WRAPPER_MODE")
	if value == "auto" {
		return ""
	}
	return value
}

// String is the answer in one line: "nft (/usr/sbin/xtables-nft-multi, stored in the switch)".
func (h Here) String() string {
	if h.Backend == "" && h.How != byNotWrapped {
		return "nothing (" + h.Error + ")"
	}
	why := map[string]string{
		bySwitch:     "stored in the switch",
		byMemory:     "remembered",
		byVariable:   "by IPTABLES_WRAPPER_MODE",
		byEachCall:   "decided at each call",
		byNotWrapped: "not wrapped",
	}[h.How]
	return string(cmp.Or(h.Backend, "unknown")) + " (" + cmp.Or(h.Program, "no program") + ", " + why + ")"
}
