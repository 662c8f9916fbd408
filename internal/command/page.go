// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// paragraph prints a label and a text on one line, which a terminal wraps by itself, and which stays whole in a pipe.
func (s *session) paragraph(label, text string) {
	fmt.Fprintln(s.stdout, label+strings.Join(strings.Fields(printable(text)), " "))
}

// printable has a space for what is none: not even a name of the system reaches the terminal as a command.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, text)
}

// table prints rows in columns, the first of which is a heading.
func (s *session) table(rows ...[]string) {
	t := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
}

func (s *session) json(value any) {
	e := json.NewEncoder(s.stdout)
	e.SetIndent("", "  ")
	_ = e.Encode(value)
}

// answer is what detect prints: the host's backend and, in this container's own network namespace, what iptables runs.
// Its JSON form is docs/detect.schema.json.
type answer struct {
	detect.Result
	Here    *here.Here   `json:"here,omitempty"`
	Network here.Network `json:"network"`
}

// remark says what makes the answer less than the whole truth.
func (s *session) remark(a answer) {
	if a.Here != nil && a.Here.Differs {
		s.say("iptables in this container is %s: it differs from the host; run: iptables-wrapper doctor", a.Here)
	}
	if a.Network.Own && !a.Conclusive {
		s.say(here.PodNetwork)
	}
	for _, c := range a.Conflicts {
		s.say("conflict: %s; run: iptables-wrapper doctor", c.Explain())
	}
	if !a.Conclusive {
		s.say("not certain: %s", a.Uncertainty())
	}
}

func (s *session) answer(format string, a answer) {
	switch format {
	case "text":
		fmt.Fprintln(s.stdout, a.Mode)
	case "table":
		s.summary(a)
		s.tables(a.Result)
	case "json":
		s.json(a)
	case "env": // lines for a shell's eval. No value needs quotes
		fmt.Fprintf(s.stdout, "IPTABLES_MODE=%s\nIPTABLES_REASON=%s\nIPTABLES_CONCLUSIVE=%t\n", a.Mode, a.Reason, a.Conclusive)
	case "nfd":
		// A feature file for the local source of Node Feature Discovery, which makes labels of it such as
		// feature.node.kubernetes.io/iptables.mode. A guess is not a feature of the node.
		mode := a.Mode
		if !a.Conclusive {
			mode = "unknown"
		}
		fmt.Fprintf(s.stdout, "iptables.mode=%s\niptables.reason=%s\niptables.conclusive=%t\n", mode, a.Reason, a.Conclusive)
	}
}

// summary prints what matters most: how sure the answer is, too.
func (s *session) summary(a answer) {
	sure := map[bool]string{true: "certain", false: "not certain"}[a.Conclusive]
	s.paragraph("host:           ", fmt.Sprintf("%s (%s: %s)", a.Mode, sure, a.Because()))
	if a.Here != nil {
		s.paragraph("iptables here:  ", a.Here.String())
	}
	s.paragraph("network:        ", a.Network.String())
}

func (s *session) tables(r detect.Result) {
	backends := [][]string{{"BACKEND", "FAMILY", "KERNEL", "HINT", "CANARY", "RULES"}}
	tables := [][]string{{"TABLE", "", "", "RULES"}}
	for _, e := range r.Evidence {
		backends = append(backends, []string{string(e.Backend), string(e.Family), e.Supported.String(), e.Hint.String(), e.Canary.String(), e.Rules.String()})
		for _, t := range e.Tables {
			tables = append(tables, []string{string(e.Backend), string(e.Family), t.Name, t.Rules.String()})
		}
	}
	s.table(backends...)
	if len(tables) > 1 {
		s.table(tables...)
	}
	fmt.Fprint(s.stdout, "\nKERNEL: supported by the running kernel\n"+
		"HINT, CANARY: kubelet's chains KUBE-IPTABLES-HINT and KUBE-KUBELET-CANARY in table mangle\n")
	for _, e := range r.Evidence {
		label := fmt.Sprintf("%s %s: ", e.Backend, e.Family)
		for _, f := range e.Features {
			if f.Has == detect.No {
				s.paragraph(label, fmt.Sprintf("cannot add a %s: %v", f.Name, f.Err))
			}
		}
		for _, c := range e.Foreign {
			s.paragraph(label, fmt.Sprintf("chain %q of table %q is not iptables' own or has rules that are not", c.Name, c.Table))
		}
		if e.Err != nil {
			s.paragraph(label, e.Err.Error())
		}
	}
}
