// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor says what it saw of iptables in this container, and what can be done about it. It changes nothing and
// creates nothing, and prints no command that changes a rule or a policy.
//
// observe reads and tries everything, once. Each row of diagnoses is one observation. What would need two stands side
// by side as facts.
package doctor

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
)

// Report is what doctor found, and what it looked at. Its JSON form is what "doctor -o json" prints.
type Report struct {
	Version   int            `json:"version"`
	Findings  []Finding      `json:"findings"` // problems first
	Unseen    []string       `json:"unseen"`   // why not all could be seen
	Host      detect.Result  `json:"host"`
	Commands  []Command      `json:"commands"`            // the six, as PATH finds them
	Elsewhere []Command      `json:"elsewhere,omitempty"` // in the standard directories
	Record    detect.Backend `json:"record,omitempty"`    // of this network namespace
	Variable  string         `json:"variable,omitempty"`  // the value of plan.Variable
	Programs  []Program      `json:"programs"`            // iptables' own, nft's first
	Tables    []rules.Table  `json:"tables"`
	Network   Network        `json:"network"`
	Process   Process        `json:"process"`
	Kernel    string         `json:"kernel"` // its release

	state *state
}

// Finding is something that is wrong, or may be.
type Finding struct {
	Code     string   `json:"code"` // stable: alerts can rely on it
	Severity string   `json:"severity"`
	Text     string   `json:"text"` // what was seen
	Look     []string `json:"look"` // commands that show it; none of them changes anything
	Do       string   `json:"do"`   // what to do about it, in words
	More     string   `json:"more"` // the paragraph that explains it
}

// The severities. With a problem, doctor ends with status 1.
const (
	problem = "problem" // iptables fails here, or its rules do not have the effect that they should have
	warning = "warning" // it may fail, or somewhere else
)

// Examine looks at everything and changes nothing. limit is how long each program may run that it starts. reference is
// the tag or the commit of this program's documentation.
func Examine(limit time.Duration, reference string) Report {
	s := observe(limit)
	var name unix.Utsname
	_ = unix.Uname(&name) // fails for a wrong address only
	return Report{
		Version: 1, Findings: s.diagnose(reference), Unseen: append([]string{}, s.unseen()...), Host: s.host,
		Commands: s.commands, Elsewhere: s.elsewhere, Record: s.record, Variable: os.Getenv(plan.Variable),
		Programs: s.programs, Tables: append([]rules.Table{}, s.tables...), Network: s.network, Process: s.process,
		Kernel: unix.ByteSliceToString(name.Release[:]), state: s,
	}
}

// Problem reports whether one of the findings is a problem.
func (r Report) Problem() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == problem })
}

// Lines are for people: what was looked at, each finding with what shows it and what to do, then the facts.
func (r Report) Lines() (all []string) {
	all = append(all, r.title(), "")
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%-8s %s: %s", strings.ToUpper(f.Severity), f.Code, f.Text))
		for _, command := range f.Look {
			all = append(all, "   look: "+command)
		}
		all = append(all, "   do:   "+f.Do, "   more: "+f.More, "")
	}
	for _, fact := range r.facts() {
		if fact[1] != "" {
			all = append(all, cut(fmt.Sprintf("%-15s %s", fact[0]+":", fact[1]), longest))
		}
	}
	return all
}

// title says what was looked at.
func (r Report) title() string {
	s := r.state
	listed := each(filter(families, s.lists), func(f detect.Family) string { return savers[f] })
	other := s.wanted().Other()
	text := "iptables did not list the rules of " + string(s.wanted())
	if len(listed) > 0 {
		text = fmt.Sprintf("%s listed the rules of %s", strings.Join(listed, " and "), s.wanted())
	}
	text += fmt.Sprintf("; rules of %s: %s", other, cut(s.has(other), room/2))
	switch {
	case len(r.Unseen) > 0:
		return fmt.Sprintf("not all could be seen; findings: %d; %s", len(r.Findings), text)
	case len(r.Findings) > 0:
		return fmt.Sprintf("findings: %d; %s", len(r.Findings), text)
	}
	return "no problem found: " + text
}

// unseen says why not all could be seen. Of the wanted backend, what iptables-save lists is enough.
func (s *state) unseen() (all []string) {
	if s.scarce != nil {
		all = append(all, "doctor lacked processes, open files or memory: "+oneLine(s.scarce))
	}
	for _, c := range s.calls {
		if c.code == unread || c.code == endless && hangs(s) == "" {
			all = append(all, c.String())
		}
	}
	for _, b := range detect.Backends() {
		isListed := func(f detect.Family) bool { return b == s.wanted() && (s.families[f].isOff || s.lists(f)) }
		if s.errors[b] != nil && !(isListed(detect.IPv4) && isListed(detect.IPv6)) {
			all = append(all, fmt.Sprintf("%s: %s", b, oneLine(s.errors[b])))
		}
		for _, t := range s.tables {
			if isOf(t, b) && t.More && !isListed(familyOf(t)) {
				all = append(all, fmt.Sprintf("%s: a part of %s", b, title(t)))
			}
		}
	}
	return all
}

// facts are what was looked at, one in a line, each with its name.
func (r Report) facts() (all [][2]string) {
	s := r.state
	certain := map[bool]string{true: "certain", false: "not certain"}[s.host.Certain]
	var markers []string
	for _, b := range detect.Backends() {
		for _, m := range s.host.Evidence.Of(b).Markers {
			markers = append(markers, fmt.Sprintf("%s (%s, %s, %s)", cmp.Or(m.Chain, m.Table), m.Program, b, m.Family))
		}
	}
	isNative := func(t rules.Table) bool { return t.Native }
	isAbsent := func(_ *state, c Command) bool { return c.isAbsent() }
	way := func(c Command) string { return fmt.Sprintf("%s: %v", quoted(c.Path), c.Call) }
	all = [][2]string{
		{"host", fmt.Sprintf("%s (%s: %s)", s.host.Backend, certain, s.host.Because())},
		{"markers", list(markers)},
		{"iptables here", s.commands[0].Call.String()},
		{"it leads", strings.Join(s.commands[0].way(), " -> ")},
		{"record", string(r.Record)},
		{"variable", plain(r.Variable)},
		{"missing", list(pathsOf(s.which(isAbsent)))},
		{"elsewhere", fit(room, "; ", each(s.elsewhere, way))},
	}
	for i, b := range detect.Backends() {
		all = append(all, [][2]string{{string(b), r.Programs[i].String()}, {"rules, " + string(b), s.has(b)}}...)
	}
	all = append(all, [][2]string{
		{"native tables", describeAll(filter(s.tables, isNative))},
		{"network", r.Network.String()},
		{"process", r.Process.String()},
		{"kernel", r.Kernel},
	}...)
	for _, why := range r.Unseen {
		all = append(all, [2]string{"not seen", why})
	}
	return all
}

// Program is iptables' own program of one backend.
type Program struct {
	Backend detect.Backend `json:"backend"`
	Path    string         `json:"path,omitempty"`
	Version string         `json:"version,omitempty"` // the line that it prints
	Error   string         `json:"error,omitempty"`   // why it printed none
}

// String is what a fact says of a program: "iptables v1.8.9 (nf_tables), /usr/sbin/iptables-nft".
func (p Program) String() string {
	if p.Error != "" {
		return strings.TrimPrefix(fmt.Sprintf("%s (%s)", p.Path, p.Error), " ")
	}
	return p.Version + ", " + p.Path
}

// isOlder reports whether a program is known to be older than a release.
func (p Program) isOlder(than ...int) bool {
	release := make([]int, 3)
	_, err := fmt.Sscanf(p.Version, "iptables v%d.%d.%d", &release[0], &release[1], &release[2])
	return err == nil && slices.Compare(release, than) < 0
}
