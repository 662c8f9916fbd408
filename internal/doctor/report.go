// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor says what it saw of iptables in this container, and what can be done about it. It changes nothing and
// creates nothing, and prints no command that changes a rule or a policy.
//
// observe reads and tries everything, once. Each row of diagnoses is one observation. What would need two stands side
// by side as facts.
package doctor

import (
	"os"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// Version is that of the JSON form of a Report.
const Version = 1

// Limit is how long each program may run that doctor starts.
const Limit = run.Limit

// Report is what doctor found, and what it looked at. Its JSON form is what "doctor -o json" prints.
type Report struct {
	Version   int            `json:"version"`
	Findings  []Finding      `json:"findings"` // problems first
	Unseen    []string       `json:"unseen"`   // why not all could be seen
	Host      Host           `json:"host"`
	Commands  []Command      `json:"commands"`            // the six, as PATH finds them
	Elsewhere []Command      `json:"elsewhere,omitempty"` // in the standard directories
	Switch    string         `json:"switch,omitempty"`    // "/usr/sbin/iptables-current -> iptables-wrapper"
	Record    detect.Backend `json:"record,omitempty"`    // of this network namespace
	Variable  string         `json:"variable,omitempty"`  // the value of plan.Variable
	Programs  []Program      `json:"programs"`            // iptables' own, nft's first
	Tables    []Table        `json:"tables"`
	Network   Network        `json:"network"`
	Process   Process        `json:"process"`
	Kernel    string         `json:"kernel"` // its release

	state *state
}

// Finding is something that is wrong, or may be.
type Finding struct {
	Code     string   `json:"code"` // stable: alerts can rely on it
	Severity Severity `json:"severity"`
	Text     string   `json:"text"` // what was seen
	Look     []string `json:"look"` // commands that show it; none of them changes anything
	Do       string   `json:"do"`   // what to do about it, in words
	More     string   `json:"more"` // the paragraph that explains it
}

// Severity says whether doctor ends with status 1.
type Severity string

const (
	problem Severity = "problem" // iptables fails here, or its rules do not have the effect that they should have
	warning Severity = "warning" // it may fail, or somewhere else
)

// Command is where one of the six leads, and what a call runs.
type Command struct {
	Name    string         `json:"name"`
	Way     []string       `json:"way"` // its path, and those to which it leads by a symlink
	Wrapper bool           `json:"wrapper"`
	How     plan.How       `json:"how"`
	Backend detect.Backend `json:"backend,omitempty"`
	Program string         `json:"program,omitempty"` // that a call runs
	Error   string         `json:"error,omitempty"`   // why it runs none
}

// Table is a table that exists.
type Table struct {
	Backend  detect.Backend `json:"backend"`
	Native   bool           `json:"native,omitempty"` // iptables does not list it
	Name     string         `json:"table"`            // as nft prints it: "ip filter"
	Rules    int            `json:"rules"`
	More     bool           `json:"more,omitempty"`          // there are more rules, or not all could be read
	Acts     int            `json:"acts,omitempty"`          // rules that drop or redirect
	DNS      int            `json:"dns,omitempty"`           // rules of Docker's DNS
	Made     int            `json:"made_with_nft,omitempty"` // rules
	Policies []string       `json:"policies,omitempty"`      // other than ACCEPT: "FORWARD DROP", of native tables by hook
	Chains   []string       `json:"chains,omitempty"`        // user-defined ones
}

// Examine looks at everything and changes nothing. It starts iptables' own programs and the iptables that PATH finds, if
// nobody but root and the caller can change them: to list rules, and to print their versions. limit is how long each may
// run. reference is the tag or the commit of this program's documentation.
func Examine(limit time.Duration, reference string) Report {
	s := observe(limit)
	r := Report{
		Version:   Version,
		Findings:  s.diagnose(reference),
		Unseen:    append([]string{}, s.unseen()...),
		Host:      NewHost(s.host),
		Commands:  each(s.commands, command.report),
		Elsewhere: each(s.elsewhere, command.report),
		Switch:    s.switched(),
		Record:    s.record,
		Variable:  os.Getenv(plan.Variable),
		Programs:  s.programs,
		Tables:    []Table{},
		Network:   s.network,
		Process:   s.process,
		Kernel:    kernelRelease(),
		state:     s,
	}
	for _, t := range s.tables {
		one := Table{Backend: t.Backend, Native: t.Native, Name: t.Family + " " + t.Name, Rules: t.Rules, More: t.More,
			Acts: t.Acts, DNS: t.DNS, Made: t.NFTMade, Chains: t.Chains}
		for _, p := range t.Policies {
			one.Policies = append(one.Policies, p.Chain+" "+p.Policy)
		}
		r.Tables = append(r.Tables, one)
	}
	return r
}

func (c command) report() Command {
	return Command{Name: c.Name, Way: c.way, Wrapper: c.Wrapper, How: c.plan.How, Backend: c.plan.Backend,
		Program: c.plan.Program, Error: c.plan.Error}
}

// Problem reports whether one of the findings is a problem.
func (r Report) Problem() bool { return r.number(problem) > 0 }

func (r Report) number(severity Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == severity {
			n++
		}
	}
	return n
}
