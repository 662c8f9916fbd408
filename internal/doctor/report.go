// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor says what iptables runs in this container, what the host uses, and what is wrong. It diagnoses: it
// changes nothing and creates nothing, and prints no command that changes a rule, a policy or the node's alternatives.
//
// observe reads and tries everything, once. Each code is a function of that state which returns a finding or none.
package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// Version is that of the JSON form of a Report.
const Version = 1

// Limit is how long each program may run that doctor starts.
const Limit = run.Limit

// Report is what doctor found, and what it looked at. Its JSON form is what "doctor -o json" prints.
type Report struct {
	Version  int            `json:"version"`
	Findings []Finding      `json:"findings"` // problems first
	Host     Host           `json:"host"`
	Here     plan.Plan      `json:"here"`
	Network  Network        `json:"network"`
	Kernel   string         `json:"kernel"`   // its release
	Programs []Program      `json:"programs"` // iptables' own, one for each backend
	Names    []link.Command `json:"names"`    // where the six commands lead
	Native   []nft.Native   `json:"native"`   // tables of nf_tables that iptables does not list
	Fails    []Extension    `json:"fails"`    // matches and targets that iptables cannot load here
}

// Examine looks at everything and changes nothing. It starts iptables' own programs and the iptables that PATH finds,
// if nobody but root and the caller can change them: to list rules, to load extensions, and to print their versions.
// limit is how long each may run. reference is the tag or the commit of this program's documentation.
func Examine(limit time.Duration, reference string) Report {
	s := observe(limit)
	r := Report{
		Version:  Version,
		Findings: s.diagnose(reference),
		Host:     NewHost(s.host),
		Here:     s.names[0].call,
		Network:  s.network,
		Kernel:   kernelRelease(),
		Native:   append([]nft.Native{}, s.nft.native...),
		Fails:    append([]Extension{}, s.fails...),
	}
	for _, p := range s.programs {
		r.Programs = append(r.Programs, p.Program)
	}
	for _, n := range s.names {
		r.Names = append(r.Names, n.Command)
	}
	return r
}

// Host is what the host uses.
type Host struct {
	detect.Result
	Because string                    `json:"because"`
	Errors  map[detect.Backend]string `json:"errors,omitempty"` // what could not be asked
}

// NewHost returns a result of detect with its texts.
func NewHost(r detect.Result) Host {
	h := Host{Result: r, Because: r.Because(), Errors: map[detect.Backend]string{}}
	for _, b := range detect.Backends() {
		err := r.Evidence.Of(b).Err
		if err != nil {
			h.Errors[b] = err.Error()
		}
	}
	return h
}

// String returns one line for people: "legacy (not certain: no chain or table of a known program was found)".
func (h Host) String() string {
	certain := "certain"
	if !h.Certain {
		certain = "not certain"
	}
	return fmt.Sprintf("%s (%s: %s)", h.Backend, certain, h.Because)
}

// Finding is something that is wrong, or may be.
type Finding struct {
	Code     string   `json:"code"` // stable: alerts can rely on it
	Severity Severity `json:"severity"`
	Text     string   `json:"text"` // what is wrong
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

// Problem reports whether one of the findings is a problem.
func (r Report) Problem() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == problem })
}

// Lines are for people: each finding with what shows it and what to do, then the facts that matter most.
func (r Report) Lines() (all []string) {
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%-8s %s: %s", strings.ToUpper(string(f.Severity)), f.Code, f.Text))
		for _, command := range f.Look {
			all = append(all, "   look: "+command)
		}
		all = append(all, "   do:   "+f.Do, "   more: "+f.More, "")
	}
	if len(r.Findings) == 0 {
		all = append(all, "no problem found", "")
	}
	all = append(all,
		"host:           "+r.Host.String(),
		"iptables here:  "+r.Here.String(),
		"network:        "+r.Network.String(),
		"kernel:         "+r.Kernel)
	for _, p := range r.Programs {
		all = append(all, fmt.Sprintf("%-15s %s", p.Backend+":", p))
	}
	var missing []string
	for _, n := range r.Names {
		if isAbsent(n) {
			missing = append(missing, n.Path)
		}
	}
	if len(missing) > 0 {
		all = append(all, "missing:        "+list(missing))
	}
	for _, fail := range []struct{ lacks, words string }{
		{lacks: lacksLibrary, words: "the image lacks the libraries"},
		{lacks: lacksKernel, words: "the kernel lacks its part"},
	} {
		names := namesOf(r.Fails, func(e Extension) bool { return e.Lacks == fail.lacks })
		if len(names) > 0 {
			all = append(all, "fail here:      "+strings.Join(names, ", ")+" ("+fail.words+")")
		}
	}
	if len(r.Native) > 0 {
		var tables []string
		for _, n := range r.Native {
			tables = append(tables, inLine(n))
		}
		all = append(all, "native tables:  "+strings.Join(tables, "; ")+" (packets pass these, too, and iptables does "+
			"not list them)")
	}
	return all
}

// inLine is a native table with what is in it: "inet ks: 0 rules, policy drop for output".
func inLine(n nft.Native) string {
	family, name, _ := strings.Cut(n.Table, " ")
	text := family + " " + plain(name) + ": " + count(n.Rules)
	if len(n.Drops) > 0 {
		text += ", policy drop for " + strings.Join(n.Drops, ", ")
	}
	return text
}

// Program is iptables' own program of one backend.
type Program struct {
	Backend detect.Backend `json:"backend"`
	Path    string         `json:"path,omitempty"`
	Version string         `json:"version,omitempty"` // the line that it prints
	Error   string         `json:"error,omitempty"`   // why it does not start
}

// String is what a fact says of a program: "iptables v1.8.9 (nf_tables), /usr/sbin/iptables-nft".
func (p Program) String() string {
	switch {
	case p.Path == "":
		return "none (" + p.Error + ")"
	case p.Error != "":
		return p.Path + " (" + p.Error + ")"
	}
	return p.Version + ", " + p.Path
}

// The codes. They are stable, and each is the heading of a paragraph in docs/troubleshooting.md.
const (
	notPermitted = "not-permitted"
	kernel       = "kernel"
	noProgram    = "no-program"
	wrongBackend = "wrong-backend"
	bothBackends = "both-backends"
	nftTable     = "nft-table"
	oldIptables  = "old-iptables"
	lock         = "lock"
	notWrapped   = "not-wrapped"
	uncertain    = "uncertain"
)

// codes are in the order in which an operator should look at them: what keeps iptables from running at all comes first.
var codes = []struct {
	code string
	find func(*state) *Finding
}{
	{notPermitted, (*state).notPermitted},
	{kernel, (*state).kernel},
	{noProgram, (*state).noProgram},
	{wrongBackend, (*state).wrongBackend},
	{bothBackends, (*state).bothBackends},
	{nftTable, (*state).nftTable},
	{oldIptables, (*state).oldIptables},
	{lock, (*state).lock},
	{notWrapped, (*state).notWrapped},
	{uncertain, (*state).uncertain},
}

// diagnose makes the findings, problems first. reference is the tag or the commit of the page that explains them.
func (s *state) diagnose(reference string) []Finding {
	all := []Finding{}
	for _, c := range codes {
		found := c.find(s)
		if found != nil {
			found.Code = c.code
			found.More = "https://github.com/iptables-wrappers/iptables-wrappers/blob/" + reference +
				"/docs/troubleshooting.md#" + c.code
			all = append(all, *found)
		}
	}
	// "problem" comes before "warning" in the alphabet, too.
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return all
}

// try is a sentence with what to do about errors that come together, as a failing call or command prints it.
func try(errs ...error) string {
	_, text := remedy.For(errors.Join(errs...))
	text = cmp.Or(text, remedy.Unknown)
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
