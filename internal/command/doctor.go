// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

func (s *session) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "diagnose iptables in this container, suggest fixes",
		Description: "Changes no rule and no file. Runs iptables to see whether it works, for which\n" +
			"the kernel may load modules, and takes a free lock of iptables-legacy for a\n" +
			"moment. Exits with status 1 if there is a problem. Example:\n\n" +
			"   iptables-wrapper doctor",
		Flags: []cli.Flag{
			boolFlag("check", "print nothing but the problems, one per line"),
			boolFlag("stale", "for a liveness probe: exit with status 1 only\n"+
				"\tif restarting this container would help"),
			boolFlag("all", "also print everything that was examined"),
			dirFlag(clientsDir),
			checked(&cli.StringFlag{
				Name:    "output",
				Aliases: []string{"o"},
				Value:   "text",
				Usage:   "output `FORMAT`: text or json",
			}, "text", "json"),
		},
		Action: s.doctor,
	}
}

func (s *session) doctor(c *cli.Context) error {
	variable, _ := s.variable() // doctor reports an invalid one itself
	first, err := here.Dir(s.names)
	dir := cmp.Or(c.String("dir"), first)
	if dir == "" {
		return err
	}
	if c.Bool("stale") {
		err = s.commandsIn(c.String("dir"))
		if err != nil {
			return err
		}
		return stale(doctor.Stale(s.names, dir, variable))
	}
	r := doctor.Examine(s.names, dir, variable)
	switch {
	case c.Bool("check"):
		s.problems(r)
	case c.String("output") == "json":
		s.json(r)
	default:
		s.report(r, c.Bool("all"))
	}
	if len(r.Findings) > 0 && r.Findings[0].Severity == doctor.Problem {
		return failure{status: 1}
	}
	return nil
}

// commandsIn returns an error if a directory that was asked for has no iptables: a probe of one that is misspelt would
// never fail.
func (s *session) commandsIn(dir string) error {
	if dir == "" {
		return nil
	}
	path := programs.Join(dir, "iptables")
	_, err := s.names.Tree.Lstat(path)
	if err != nil {
		err = tree.PathError("doctor: lstat", path, err)
		return failure{1, err, rightDir}
	}
	return nil
}

// stale is what doctor --stale ends with.
func stale(f *doctor.Finding) error {
	if f == nil {
		return nil
	}
	return failure{status: 1, err: fmt.Errorf("%s: %s", f.Code, f.Text), try: f.Fix}
}

// problems is what doctor --check prints.
func (s *session) problems(r doctor.Report) {
	for _, f := range r.Findings {
		if f.Severity == doctor.Problem {
			s.say("%s: %s", f.Code, f.Text)
		}
	}
}

var places = map[string]string{
	doctor.Container: "in this container",
	doctor.Image:     "in the image",
	doctor.Pod:       "in the Pod's spec",
	doctor.Node:      "on the node",
}

// report prints what a person needs first, and everything if asked to.
func (s *session) report(r doctor.Report, all bool) {
	var found []string
	for _, f := range r.Findings {
		found = append(found, f.Code)
		s.finding(f)
	}
	s.summary(answer{Result: r.Host, Here: &r.Here, Network: r.Network})
	s.paragraph("result:         ", cmp.Or(strings.Join(found, ", "), "no problems found"))
	if all {
		s.examined(r)
	} else {
		s.paragraph("details:        ", "iptables-wrapper doctor --all")
	}
}

// finding prints a finding, and below it the fix: a line for people, and the commands.
func (s *session) finding(f doctor.Finding) {
	s.paragraph(fmt.Sprintf("%-9s", strings.ToUpper(f.Severity)), f.Code+": "+f.Text)
	fix, commands, _ := strings.Cut(f.Fix, "\n")
	if !f.NotSpec {
		fix = places[f.Where] + ", " + fix
	}
	s.paragraph("   fix:  ", fix)
	for command := range strings.Lines(commands) {
		s.paragraph("         ", command)
	}
	fmt.Fprintln(s.stdout)
}

// examined prints everything that was looked at.
func (s *session) examined(r doctor.Report) {
	s.paragraph("capabilities:   ", cmp.Or(strings.Join(r.Capabilities, ", "), "none of those that iptables needs"))
	for _, x := range r.Programs {
		s.paragraph(fmt.Sprintf("%-16s", x.Mode+" program:"), x.Path+" "+cmp.Or(x.Error, x.Version))
	}
	s.tables(r.Host)
	s.extensions(r.Extensions)
	rows := []string{"COMMAND\tRESOLVES TO"}
	for _, n := range r.Names {
		rows = append(rows, n.Name+"\t"+n.ResolvesTo+n.Error)
	}
	s.table(rows...)
}

// summary prints what matters most: how sure the answer is, too.
func (s *session) summary(a answer) {
	sure := "not certain"
	if a.Conclusive {
		sure = "certain"
	}
	why := a.Because()
	if a.now != "" {
		why += "; the host now: " + a.now
	}
	s.paragraph("host:           ", fmt.Sprintf("%s (%s: %s)", a.Mode, sure, why))
	if a.Here != nil {
		s.paragraph("iptables here:  ", a.Here.String())
	}
	s.paragraph("network:        ", a.Network.String())
}

// tables prints the evidence: a table of the backends, one of their tables, and what else is to be said of either.
func (s *session) tables(r detect.Result) {
	backends := []string{"BACKEND\tFAMILY\tKERNEL\tHINT\tCANARY\tRULES"}
	programs := []string{"PROGRAM\tBACKEND\tFAMILY\tTABLE\tCHAIN"}
	tables := []string{"TABLE\t\t\tRULES"}
	for _, e := range r.Evidence {
		backends = append(backends, row(e.Backend, e.Family, e.Supported, e.Hint, e.Canary, e.Rules))
		for _, p := range e.Programs {
			programs = append(programs, row(p.Name, e.Backend, e.Family, p.Table, p.Chain))
		}
		for _, t := range e.Tables {
			tables = append(tables, row(e.Backend, e.Family, t.Name, t.Rules))
		}
	}
	s.table(backends...)
	if len(programs) > 1 {
		s.table(programs...)
	}
	if len(tables) > 1 {
		s.table(tables...)
	}
	fmt.Fprint(s.stdout, "\nKERNEL: supported by the running kernel\n"+
		"HINT, CANARY: kubelet's chains KUBE-IPTABLES-HINT and KUBE-KUBELET-CANARY in table mangle\n")
	for _, e := range r.Evidence {
		s.remarks(e)
	}
}

// row joins the cells of a table's row.
func row(cells ...any) string {
	var texts []string
	for _, cell := range cells {
		texts = append(texts, fmt.Sprint(cell))
	}
	return strings.Join(texts, "\t")
}

// remarks prints what is unusual about a backend and family.
func (s *session) remarks(e detect.Evidence) {
	label := fmt.Sprintf("%s %s: ", e.Backend, e.Family)
	for _, f := range e.Features {
		if f.Has == detect.No {
			s.paragraph(label, fmt.Sprintf("cannot add a %s: %v", strings.ReplaceAll(f.Name, "-", " "), f.Err))
		}
	}
	for _, c := range e.Foreign {
		s.paragraph(label, fmt.Sprintf("chain %q of table %q is not iptables' own or has rules that are not",
			c.Name, c.Table))
	}
	for _, f := range e.Faults {
		s.paragraph(label, f.Explain())
	}
	if e.Err != nil {
		s.paragraph(label, e.Err.Error())
	}
}
