// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

func (s *session) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "diagnose iptables in this container, suggest fixes",
		Description: "Changes nothing. Runs iptables to see whether it works, and asks the kernel\nfor matches and targets, for which it " +
			"may load modules. Exits with status 1\nif there is a problem. Example:\n\n   iptables-wrapper doctor",
		Flags: []cli.Flag{
			boolFlag("check", "print nothing but the problems, one a line"),
			boolFlag("stale", "for a liveness probe: exit with status 1 only\n\tif a new container of the same Pod would be right"),
			boolFlag("all", "also print all that was examined"),
			dirFlag(),
			enumFlag(&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "output `FORMAT`: text or json"}, "text", "json"),
		},
		Action: s.doctor,
	}
}

func (s *session) doctor(c *cli.Context) error {
	variable, err := s.variable()
	if err != nil {
		return err
	}
	dir := c.String("dir")
	if dir == "" {
		if dir, err = here.Dir(s.names); err != nil {
			return err
		}
	}
	if c.Bool("stale") {
		r := doctor.Glance(s.names, dir, variable)
		if f := r.Stale(); f != nil {
			return failure{1, fmt.Errorf("%s: %s", f.Code, f.Text), f.Fix}
		}
		return nil
	}
	r := doctor.Examine(s.names, dir, variable)
	switch {
	case c.Bool("check"):
		for _, f := range r.Findings {
			if f.Severity == doctor.Problem {
				s.say("%s: %s", f.Code, f.Text)
			}
		}
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

var places = map[doctor.Where]string{doctor.Container: "in this container", doctor.Image: "in the image", doctor.Pod: "in the Pod's spec", doctor.Node: "on the node"}

// report prints what a person needs first, and everything if asked to.
func (s *session) report(r doctor.Report, all bool) {
	var found []string
	for _, f := range r.Findings {
		found = append(found, f.Code)
		s.paragraph(fmt.Sprintf("%-9s", strings.ToUpper(string(f.Severity))), f.Code+": "+f.Text)
		fix, commands, _ := strings.Cut(f.Fix, "\n")
		if f.Where != doctor.Pod || !strings.HasPrefix(fix, "delete the Pod") {
			fix = places[f.Where] + ", " + fix
		}
		s.paragraph("   fix:  ", fix)
		for command := range strings.Lines(commands) {
			s.paragraph("         ", command)
		}
		fmt.Fprintln(s.stdout)
	}
	s.summary(answer{r.Host, &r.Here, r.Network})
	result := cmp.Or(strings.Join(found, ", "), "no problems found")
	if !all {
		s.paragraph("result:         ", result+"; details: iptables-wrapper doctor --all")
		return
	}
	s.paragraph("result:         ", result)
	s.paragraph("capabilities:   ", cmp.Or(strings.Join(r.Capabilities, ", "), "none of those that iptables needs"))
	s.tables(r.Host)

	rows := [][]string{{"MODE", "PROGRAM", "VERSION"}}
	for _, x := range r.Programs {
		rows = append(rows, []string{string(x.Mode), x.Path, cmp.Or(x.Error, x.Version)})
	}
	s.table(rows...)

	rows = [][]string{{"COMMAND", "RESOLVES TO"}}
	for _, n := range r.Names {
		rows = append(rows, []string{n.Name, n.ResolvesTo + n.Error})
	}
	s.table(rows...)
}
