// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
)

// Lines are for people: what was looked at, each finding with what shows it and what to do, then the facts.
func (r Report) Lines() (all []string) {
	all = append(all, r.title(), "")
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%-8s %s: %s", strings.ToUpper(string(f.Severity)), f.Code, f.Text))
		for _, command := range f.Look {
			all = append(all, "   look: "+command)
		}
		all = append(all, "   do:   "+f.Do, "   more: "+f.More, "")
	}
	for _, fact := range r.facts() {
		if fact.value != "" {
			all = append(all, cut(fmt.Sprintf("%-15s %s", fact.name+":", fact.value), longest))
		}
	}
	return all
}

// title says what was looked at.
func (r Report) title() string {
	s := r.state
	var listed []string
	for _, c := range s.calls {
		if c.worked() && (c.Command == savers[detect.IPv4] || c.Command == savers[detect.IPv6]) {
			listed = append(listed, c.Command)
		}
	}
	looked := "iptables was not called"
	switch {
	case len(listed) > 0:
		looked = fmt.Sprintf("%s list the rules of %s", strings.Join(listed, " and "), s.wanted())
	case len(s.calls) > 0:
		looked = "iptables lists no rules"
	}
	other := s.wanted().Other()
	isOther := func(t rules.Table) bool { return isOf(t, other) && isUsed(t) }
	switch {
	case s.errors[other] != nil:
		looked += fmt.Sprintf(", and what %s has is not known", other)
	case len(s.tablesThat(isOther)) == 0:
		looked += fmt.Sprintf(", and %s has no rules", other)
	default:
		looked += fmt.Sprintf(", and %s has rules, too", other)
	}
	switch problems, warnings := r.number(problem), r.number(warning); {
	case problems+warnings > 0:
		parts := []string{number(problems, false, "problem"), number(warnings, false, "warning")}
		isNone := func(text string) bool { return strings.HasPrefix(text, "0 ") }
		looked = strings.Join(slices.DeleteFunc(parts, isNone), ", ") + ": " + looked
	case len(r.Unseen) == 0:
		looked = "no problem found: " + looked
	}
	if len(r.Unseen) > 0 {
		looked += "; not all could be seen (below: not seen)"
	}
	return looked
}

// unseen says why not all could be seen. Of the wanted backend, what iptables-save lists is enough.
func (s *state) unseen() (all []string) {
	if s.scarce != nil {
		all = append(all, "doctor ran out of processes, open files or memory: "+oneLine(s.scarce.Error()))
	}
	for _, c := range s.calls {
		if c.code == endless && hangs(s) == "" || c.code == unread {
			all = append(all, c.String())
		}
	}
	for _, b := range detect.Backends() {
		isListed := b == s.wanted() && s.lists()
		if s.errors[b] != nil && !isListed {
			all = append(all, fmt.Sprintf("%s: %s", b, oneLine(s.errors[b].Error())))
		}
		for _, t := range s.tables {
			if isOf(t, b) && t.More && !isListed {
				all = append(all, fmt.Sprintf("%s: %s is too large to be read", b, title(t)))
			}
		}
	}
	for f, a := range s.families {
		if a.refused != nil && takesNoRules(s) == "" && !s.shows(detect.Family(f)) {
			all = append(all, fmt.Sprintf("%v: %s", detect.Family(f), oneLine(a.refused.Error())))
		}
	}
	return all
}

// lists reports whether iptables-save listed the rules of each family that the kernel has.
func (s *state) lists() bool {
	return !slices.ContainsFunc(families, func(f detect.Family) bool {
		c, isCalled := s.saved(f)
		return !s.families[f].isOff && !(isCalled && c.worked())
	})
}

type fact struct{ name, value string }

// facts are what was looked at, one in a line.
func (r Report) facts() []fact {
	s := r.state
	all := []fact{
		{"host", r.Host.String()},
		{"markers", fit(room, ", ", r.Host.markers())},
		{"iptables here", s.commands[0].plan.String()},
		{"switch", r.Switch},
		{"record", string(r.Record)},
		{"variable", r.Variable},
		{"missing", s.missing()},
		{"elsewhere", fit(room, "; ", s.ways())},
	}
	for _, p := range r.Programs {
		all = append(all, fact{string(p.Backend), p.String()})
	}
	for _, b := range detect.Backends() {
		all = append(all, fact{"rules, " + string(b), s.has(b)})
	}
	all = append(all,
		fact{"native tables", s.native()},
		fact{"network", r.Network.String()},
		fact{"process", r.Process.String()},
		fact{"kernel", r.Kernel})
	for _, why := range r.Unseen {
		all = append(all, fact{"not seen", why})
	}
	return all
}

// missing are those of the six that are not there.
func (s *state) missing() string {
	return list(pathsOf(s.which(func(_ *state, c command) bool { return c.isAbsent() })))
}

// ways are what the commands elsewhere run, of those in one directory that run the same, the first one.
func (s *state) ways() (all []string) {
	var seen []string
	for _, c := range s.elsewhere {
		key := filepath.Dir(c.Path) + " " + c.plan.Program
		if !slices.Contains(seen, key) {
			seen = append(seen, key)
			all = append(all, fmt.Sprintf("%s: %v", quoted(c.Path), c.plan))
		}
	}
	return all
}

// switched is where the switch leads, "" if none is on the way of iptables.
func (s *state) switched() string {
	c := s.commands[0]
	if c.Switch == "" {
		return ""
	}
	path := filepath.Join(c.Switch, link.Switch)
	content, _ := os.Readlink(path) // it is a symlink on the way
	return path + " -> " + content
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

// markers are those of the host that were found: "KUBE-IPTABLES-HINT (kubelet, nft, IPv4)".
func (h Host) markers() (all []string) {
	for _, b := range detect.Backends() {
		for _, m := range h.Evidence.Of(b).Markers {
			all = append(all, fmt.Sprintf("%s (%s, %s, %s)", cmp.Or(m.Chain, "table "+m.Table), m.Program, b, m.Family))
		}
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
	switch {
	case p.Path == "":
		return "none (" + p.Error + ")"
	case p.Error != "":
		return p.Path + " (" + p.Error + ")"
	}
	return p.Version + ", " + p.Path
}

// isOlder reports whether a program is known to be older than a release.
func (p Program) isOlder(than ...int) bool {
	release := make([]int, 3)
	_, err := fmt.Sscanf(p.Version, "iptables v%d.%d.%d", &release[0], &release[1], &release[2])
	return err == nil && slices.Compare(release, than) < 0
}

// program is iptables' own program of the wanted backend.
func (s *state) program() Program {
	return s.programs[slices.Index(detect.Backends(), s.wanted())]
}
