// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Host is what the host uses, as far as this network namespace shows it.
type Host struct {
	Backend     evidence.Mode   `json:"backend"`
	Reason      evidence.Reason `json:"reason"`
	Conclusive  bool            `json:"conclusive"`
	Because     string          `json:"because"`               // one clause
	Uncertainty string          `json:"uncertainty,omitempty"` // why it is not certain, one clause
	Conflict    string          `json:"conflict,omitempty"`    // what contradicts it, one clause
	Evidence    []Evidence      `json:"evidence"`              // of each backend and family

	Result      evidence.Result   `json:"-"` // the answer of a call
	Contradicts evidence.Decision `json:"-"` // the host's certain answer, if it contradicts what is remembered
}

// Evidence is what is known of one backend and family.
type Evidence struct {
	Backend  evidence.Mode   `json:"backend"`
	Family   string          `json:"family"` // "IPv4", "IPv6"
	Works    evidence.Answer `json:"works"`
	Hint     evidence.Answer `json:"hint"`   // KUBE-IPTABLES-HINT is in table mangle
	Canary   evidence.Answer `json:"canary"` // KUBE-KUBELET-CANARY is in table mangle
	Rules    evidence.Answer `json:"rules"`
	Count    int             `json:"count"` // of the rules, approximately
	Tables   []string        `json:"tables,omitempty"`
	Programs []HostProgram   `json:"programs,omitempty"`
	Native   []string        `json:"native,omitempty"`  // tables of nft that iptables does not use
	Foreign  []Chain         `json:"foreign,omitempty"` // chains in iptables' tables that are not iptables' own
	Error    string          `json:"error,omitempty"`
}

// HostProgram is a program of the host, and the chain or table by which it is known.
type HostProgram struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	Chain string `json:"chain,omitempty"`
}

// Chain is a chain of one of iptables' tables.
type Chain struct {
	Table string `json:"table"`
	Chain string `json:"chain"`
}

// Host answers what the host uses, as a call in this place would: with what the container remembers, unless the query
// overrides it. What is remembered is held against the host: if the host's certain answer is the other backend, nothing
// is certain, and both are named.
func (p Place) Host(q evidence.Query) Host {
	q.Installed = p.find("iptables").Only()
	if q.Override == "" {
		q.Remembered = p.remembered()
	}
	h := Host{Result: q.Ask()}
	if h.Result.Reason == evidence.Remembered {
		h.hold(q)
	}
	h.fill()
	return h
}

// hold asks once more without what is remembered.
func (h *Host) hold(q evidence.Query) {
	q.Remembered = evidence.Decision{}
	now := q.Ask()
	if !now.Conclusive || now.Mode == h.Result.Mode {
		return
	}
	h.Contradicts = now.Decision
	h.Result.Conclusive = false
}

// fill copies the answer into what JSON shows.
func (h *Host) fill() {
	r := h.Result
	h.Backend = r.Mode
	h.Reason = r.Reason
	h.Conclusive = r.Conclusive
	h.Because = r.Because
	h.Uncertainty = r.Uncertainty()
	h.Conflict = r.Conflict()
	if h.Contradicts.Mode != "" {
		h.Uncertainty = "the host now uses " + h.Contradicts.String()
	}
	for _, mode := range evidence.Modes() {
		for i, about := range r.Of(mode) {
			h.Evidence = append(h.Evidence, newEvidence(mode, evidence.Family(i), about))
		}
	}
}

func newEvidence(mode evidence.Mode, family evidence.Family, a evidence.About) Evidence {
	e := Evidence{
		Backend: mode,
		Family:  family.String(),
		Works:   a.Works,
		Hint:    a.Hint,
		Canary:  a.Canary,
		Rules:   a.Rules,
		Count:   a.Count,
		Tables:  a.Tables,
		Native:  a.Native,
	}
	for _, p := range a.Programs {
		e.Programs = append(e.Programs, HostProgram(p))
	}
	for _, c := range a.Foreign {
		e.Foreign = append(e.Foreign, Chain{c.Table, c.Name})
	}
	if a.Err != nil {
		e.Error = a.Err.Error()
	}
	return e
}

// String is the answer in one line: "nft (certain: chain KUBE-IPTABLES-HINT is in nft's mangle table (IPv4))".
func (h Host) String() string {
	if h.Conclusive {
		return string(h.Backend) + " (certain: " + h.Because + ")"
	}
	why := h.Because
	if h.Result.Err() != nil || h.Reason == evidence.Default {
		why = h.Uncertainty // "no evidence" would be wrong where none could be read
	}
	text := string(h.Backend) + " (not certain: " + why
	if h.Contradicts.Mode != "" {
		text += "; " + h.Uncertainty
	}
	return text + ")"
}

// now is what the host uses now, whatever is remembered.
func (h Host) now() evidence.Decision {
	if h.Contradicts.Mode != "" {
		return h.Contradicts
	}
	return h.Result.Decision
}

// uses reports whether the host is known to use a backend.
func (h Host) uses(mode evidence.Mode) bool { return h.now().Conclusive && h.now().Mode == mode }

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
	value := variable()
	mode := evidence.Mode(value)
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
	case value != "" && !mode.Valid():
		here.How = byVariable
		here.Error = errVariable.Error()
		return here
	case value != "":
		here.How = byVariable
	case h.Result.Reason == evidence.Remembered:
		here.How = byMemory
	default:
		here.How = byEachCall
	}
	here.Backend = cmp.Or(mode, h.Result.Mode)
	program := p.find("iptables")[here.Backend]
	here.Program = program.Path
	if program.Err != nil {
		here.Error = program.Err.Error()
	}
	return here
}

var errVariable = errors.New("is not one of auto, nft, legacy")

// variable is the value of IPTABLES_WRAPPER_MODE, "" if that leaves it to the wrapper.
func variable() string {
	value := os.Getenv("IPTABLES_WRAPPER_MODE")
	if value == "auto" {
		return ""
	}
	return value
}

// String is the answer in one line: "nft (/usr/sbin/xtables-nft-multi, stored in the switch)".
func (h Here) String() string {
	switch h.How {
	case byNothing:
		return "nothing (" + h.Error + ")"
	case byVariable:
		if h.Backend == "" {
			return "nothing: IPTABLES_WRAPPER_MODE " + h.Error
		}
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
