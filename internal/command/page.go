// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// page is where answers are printed. It remembers an error of writing, so nobody else need.
type page struct {
	w     io.Writer
	err   error
	color bool
}

// newPage has colours on a terminal only, and not where NO_COLOR is set (no-color.org).
func newPage(w io.Writer) *page {
	p := &page{w: w}
	if file, ok := w.(*os.File); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
		p.color = err == nil
	}
	return p
}

func (p *page) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.err = cmp.Or(p.err, err)
	return n, err
}

// The colours, from ECMA-48.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	normal = "\x1b[0m"
)

// paragraph prints a label and a text on one line, which a terminal wraps by itself, and which stays whole in a pipe.
func (p *page) paragraph(color, label, text string) {
	if p.color && color != "" {
		word := strings.TrimRight(label, " ")
		label = color + word + normal + label[len(word):]
	}
	fmt.Fprintln(p, strings.TrimRight(label+strings.Join(strings.Fields(printable(text)), " "), " "))
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
func (p *page) table(rows ...[]string) {
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
}

func (p *page) json(value any) {
	e := json.NewEncoder(p)
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

// remarks are what makes the answer less than the whole truth.
func (a answer) remarks() []string {
	var lines []string
	if a.Here != nil && a.Here.Differs {
		lines = append(lines, fmt.Sprintf("iptables in this container is %s: it differs from the host; run: iptables-wrapper doctor", a.Here))
	}
	if a.Network.Own && !a.Conclusive {
		lines = append(lines, here.PodNetwork)
	}
	for _, c := range a.Conflicts {
		lines = append(lines, fmt.Sprintf("conflict: %s; run: iptables-wrapper doctor", c.Explain()))
	}
	if !a.Conclusive {
		lines = append(lines, "not certain: "+a.Uncertainty())
	}
	return lines
}

func (p *page) answer(format string, a answer) {
	switch format {
	case "text":
		fmt.Fprintln(p, a.Mode)
	case "table":
		p.evidence(a)
	case "json":
		p.json(a)
	case "env": // lines for a shell's eval. No value needs quotes
		fmt.Fprintf(p, "IPTABLES_MODE=%s\nIPTABLES_REASON=%s\nIPTABLES_CONCLUSIVE=%t\n", a.Mode, a.Reason, a.Conclusive)
	case "nfd":
		// A feature file for the local source of Node Feature Discovery, which makes labels of it such as
		// feature.node.kubernetes.io/iptables.mode. A guess is not a feature of the node.
		mode := a.Mode
		if !a.Conclusive {
			mode = "unknown"
		}
		fmt.Fprintf(p, "iptables.mode=%s\niptables.reason=%s\niptables.conclusive=%t\n", mode, a.Reason, a.Conclusive)
	}
}

func (p *page) evidence(a answer) {
	p.paragraph("", "", a.String())
	for _, c := range a.Conflicts {
		p.paragraph(red, "conflict: ", c.Explain())
	}
	switch {
	case !a.Conclusive:
		p.paragraph(yellow, "not certain: ", a.Uncertainty())
	case len(a.Conflicts) == 0:
		p.paragraph(green, "certain", "")
	}
	if a.Here != nil {
		color, text := "", a.Here.String()
		if a.Here.Differs {
			color, text = red, text+": differs from the host; run: iptables-wrapper doctor"
		}
		p.paragraph(color, "iptables here: ", text)
	}
	p.paragraph("", "network: ", a.Network.String())
	p.tables(a.Result)
}

func (p *page) tables(r detect.Result) {
	backends := [][]string{{"BACKEND", "FAMILY", "KERNEL", "HINT", "CANARY", "RULES"}}
	tables := [][]string{{"TABLE", "", "", "RULES"}}
	for _, e := range r.Evidence {
		backends = append(backends, []string{string(e.Backend), string(e.Family), short(e.Supported), short(e.Hint), short(e.Canary), number(e.Rules)})
		for _, t := range e.Tables {
			tables = append(tables, []string{string(e.Backend), string(e.Family), t.Name, number(t.Rules)})
		}
	}
	p.table(backends...)
	if len(tables) > 1 {
		p.table(tables...)
	}
	fmt.Fprint(p, "\nKERNEL: supported by the running kernel. ?: unknown\n"+
		"HINT, CANARY: kubelet's chains KUBE-IPTABLES-HINT and KUBE-KUBELET-CANARY in table mangle\n")
	for _, e := range r.Evidence {
		for _, f := range e.Features {
			if f.Has == detect.No {
				p.paragraph(yellow, fmt.Sprintf("%s %s: ", e.Backend, e.Family), fmt.Sprintf("cannot add a %s: %v", f.Name, f.Err))
			}
		}
		for _, c := range e.Foreign {
			p.paragraph(yellow, fmt.Sprintf("%s %s: ", e.Backend, e.Family), fmt.Sprintf("chain %q of table %q is not iptables' own or has rules that are not", c.Name, c.Table))
		}
		if e.Err != nil {
			p.paragraph(yellow, fmt.Sprintf("%s %s: ", e.Backend, e.Family), e.Err.Error())
		}
	}
}

func short(a detect.Answer) string {
	if a == detect.Unknown {
		return "?"
	}
	return a.String()
}

func number(c detect.Count) string {
	switch {
	case c.Min == c.Max:
		return fmt.Sprint(c.Min)
	case c.Max == detect.Unbounded && c.Min == 0:
		return "?"
	case c.Max == detect.Unbounded:
		return fmt.Sprintf(">=%d", c.Min)
	}
	return fmt.Sprintf("%d-%d", c.Min, c.Max)
}
