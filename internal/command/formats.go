// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// answer is what detect prints: the host's backend and, in this container's own network namespace, what iptables runs.
// Its JSON form is docs/detect.v3.schema.json.
type answer struct {
	detect.Result
	Here    *here.Here   `json:"here,omitempty"`
	Network here.Network `json:"network"`

	now string // what the host uses, if that is known to be not what the container remembers
}

// contradict makes a guess of what the container remembers, if the host is known to use the other backend. The
// container goes on with what it remembers.
func (a *answer) contradict(host detect.Result) {
	if a.Reason != detect.Remembered || !host.Conclusive || host.Mode == a.Mode {
		return
	}
	a.now = host.Because()
	a.Result = a.Doubt("this container remembers " + string(a.Mode) + ", but the host uses the other backend: " + a.now)
}

// format is a form in which detect prints its answer.
type format struct {
	name  string
	about string
	print func(*session, answer)

	// withoutDryRun is for what is asked again and again on every node, needed or not: a dry run makes the kernel load
	// modules.
	withoutDryRun bool
}

// formats are the values of detect's --output, the default first.
var formats = []format{
	{name: "text", about: "the backend alone", print: (*session).printMode},
	{name: "table", about: "all evidence, for people", print: (*session).printTable},
	{name: "json", about: "all evidence, for programs", print: (*session).printJSON},
	{name: "env", about: "variables, for a shell's eval", print: (*session).printVariables},
	{name: "nfd", about: "a file for Node Feature Discovery", print: (*session).printFeatures, withoutDryRun: true},
}

// chosen is the format that --output names.
func chosen(c *cli.Context) format {
	named := func(f format) bool { return f.name == c.String("output") }
	return formats[slices.IndexFunc(formats, named)]
}

func outputFlag(formats []format) cli.Flag {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return checked(&cli.StringFlag{
		Name:    "output",
		Aliases: []string{"o"},
		Value:   names[0],
		Usage:   "print the answer in `FORMAT`, which is one of those\n\tabove",
	}, names...)
}

// listed are the formats for the help text, one per line.
func listed(formats []format) string {
	width := 0
	for _, f := range formats {
		width = max(width, len(f.name))
	}
	var lines []string
	for _, f := range formats {
		lines = append(lines, fmt.Sprintf("   %-*s  %s", width, f.name, f.about))
	}
	return strings.Join(lines, "\n")
}

func (s *session) printMode(a answer) {
	fmt.Fprintln(s.stdout, a.Mode)
}

func (s *session) printTable(a answer) {
	s.summary(a)
	s.tables(a.Result)
}

func (s *session) printJSON(a answer) {
	s.json(a)
}

// printVariables prints lines for a shell's eval. No value needs quotes.
func (s *session) printVariables(a answer) {
	fmt.Fprintf(s.stdout, "IPTABLES_WRAPPER_HOST_MODE=%s\n", a.Mode)
	fmt.Fprintf(s.stdout, "IPTABLES_WRAPPER_HOST_REASON=%s\n", a.Reason)
	fmt.Fprintf(s.stdout, "IPTABLES_WRAPPER_HOST_CONCLUSIVE=%t\n", a.Conclusive)
}

// printFeatures prints a file that Node Feature Discovery turns into labels of the node. A guess is not a feature of
// it.
func (s *session) printFeatures(a answer) {
	mode := a.Mode
	if !a.Conclusive {
		mode = "unknown"
	}
	fmt.Fprintf(s.stdout, "iptables.mode=%s\n", mode)
	fmt.Fprintf(s.stdout, "iptables.reason=%s\n", a.Reason)
	fmt.Fprintf(s.stdout, "iptables.conclusive=%t\n", a.Conclusive)
}
