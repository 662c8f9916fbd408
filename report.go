// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// All that is written for people or machines is written here: answers to stdout, lines for people to stderr, each
// behind the program's name. A failure is one line that says what is wrong and, where there is one, a line that says
// what to do.

// usageError is a call that makes no sense. Its exit status is 2.
type usageError struct{ error }

// failure is anything else that ends a command with a status.
type failure struct {
	status int
	err    error
	hint   string
}

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// answers remembers that an answer could not be written.
type answers struct {
	io.Writer
	err error
}

func (a *answers) Write(b []byte) (int, error) {
	n, err := a.Writer.Write(b)
	if a.err == nil {
		a.err = err
	}
	return n, err
}

// complain says what went wrong and returns the exit status that goes with it.
func complain(stderr io.Writer, err error) int {
	status, hint := 1, ""
	var f failure
	switch {
	case errors.As(err, &f):
		status, hint = f.status, f.hint
	case errors.As(err, new(usageError)):
		status, hint = 2, "see iptables-wrapper --help"
	}
	// An error may join several: a line each.
	text := strings.ReplaceAll(err.Error(), "\n", "\niptables-wrapper: ")
	fmt.Fprintf(stderr, "iptables-wrapper: %s\n", text)
	if hint != "" {
		fmt.Fprintf(stderr, "iptables-wrapper: hint: %s\n", hint)
	}
	return status
}

// because says in one clause what a decision rests on.
func because(r detect.Result) string {
	switch r.Reason {
	case detect.Override:
		return "it was asked for"
	case detect.KubeletHint:
		return where(r, detect.HintChain, func(e detect.Evidence) detect.Answer { return e.Hint })
	case detect.KubeletCanary:
		return where(r, detect.CanaryChain, func(e detect.Evidence) detect.Answer { return e.Canary })
	case detect.RuleCount:
		return fmt.Sprintf("nft has %s and legacy has %s", rules(r, detect.NFT), rules(r, detect.Legacy))
	case detect.OnlySupported:
		return "this kernel supports no other backend"
	case detect.OnlyInstalled:
		return "the programs of the other backend are not here"
	default:
		return "nothing says otherwise"
	}
}

func where(r detect.Result, chain string, found func(detect.Evidence) detect.Answer) string {
	var families []string
	for _, e := range r.Evidence {
		if e.Backend == r.Mode && found(e) == detect.Yes {
			families = append(families, string(e.Family))
		}
	}
	return fmt.Sprintf("chain %s is in table mangle of %s (%s)", chain, r.Mode, strings.Join(families, ", "))
}

// rules says how many rules a backend has, as far as they were counted.
func rules(r detect.Result, backend detect.Mode) string {
	least, exact := 0, true
	for _, e := range r.Evidence {
		if e.Backend == backend {
			least += e.Rules.Min
			exact = exact && e.Rules.Min == e.Rules.Max
		}
	}
	text := fmt.Sprintf("%d rules", least)
	if least == 1 {
		text = "1 rule"
	}
	switch {
	case exact && least == 0:
		return "none"
	case exact:
		return text
	case least == 0:
		return "an unknown number"
	default:
		return "at least " + text
	}
}

// printDebug says in one line what the wrapper does.
func printDebug(stderr io.Writer, r detect.Result, moved int, why error, program string) {
	links := fmt.Sprintf("%d links moved", moved)
	if why != nil {
		links += fmt.Sprintf(" (%v)", why)
	}
	fmt.Fprintf(stderr, "iptables-wrapper: %s, because %s [%s]; %s; running %s\n", r.Mode, because(r), r.Reason, links, program)
}

// doubt says why a decision is not conclusive.
func doubt(r detect.Result) string {
	if r.Reason == detect.Override {
		return "the mode was asked for, and what the host says was not used"
	}
	for _, e := range r.Evidence {
		if e.Err != nil {
			return fmt.Sprintf("could not look at %s %s: %s", e.Backend, e.Family, advise(e.Err))
		}
	}
	switch nft, legacy := supported(r, detect.NFT), supported(r, detect.Legacy); {
	case nft == detect.No && legacy == detect.No:
		return "this kernel has neither nf_tables nor x_tables, so iptables cannot work"
	case nft == detect.No && legacy == detect.Unknown:
		return "this kernel has no nf_tables, and x_tables are not there now: a module may bring them"
	}
	return "nothing was found that tells the mode of this host: no chain of kubelet, no rule in either backend"
}

// supported says whether the kernel has a backend, for IPv4.
func supported(r detect.Result, backend detect.Mode) detect.Answer {
	for _, e := range r.Evidence {
		if e.Backend == backend && e.Family == detect.IPv4 {
			return e.Supported
		}
	}
	return detect.NotAsked
}

// advise adds to an error of the kernel what is missing.
func advise(err error) string {
	switch {
	case errors.Is(err, unix.EPERM):
		return err.Error() + ": CAP_NET_ADMIN is missing"
	case errors.Is(err, unix.EACCES):
		return err.Error() + ": it needs to be root"
	case errors.Is(err, unix.ENOENT):
		return err.Error() + ": /proc is missing"
	default:
		return err.Error()
	}
}

// explain is a sentence on a conflict.
func explain(c detect.Conflict) string {
	switch c {
	case detect.HintInBoth:
		return detect.HintChain + " is in both backends: the host changed its mode and was not restarted, or two kubelets differ"
	case detect.CanaryInBoth:
		return detect.CanaryChain + " is in both backends: the host changed its mode and was not restarted"
	case detect.StrayCanary:
		return detect.CanaryChain + " is in the other backend than " + detect.HintChain + ": it is left from another mode"
	case detect.RulesInBoth:
		return "both backends have rules: those of one are invisible to the other, and both are in force"
	default:
		return string(c)
	}
}

// format is a way to print a result.
type format struct {
	print      func(io.Writer, detect.Result) error
	everything bool // it shows all evidence
	saysAll    bool // it says that a result is not conclusive, and why
}

func formatOf(name string) format {
	switch name {
	case "table":
		return format{print: printTable, everything: true, saysAll: true}
	case "json":
		return format{print: printJSON, everything: true}
	case "env":
		return format{print: printEnv}
	case "nfd":
		return format{print: printNFD}
	default:
		return format{print: printText}
	}
}

func printText(out io.Writer, r detect.Result) error {
	_, err := fmt.Fprintln(out, r.Mode)
	return err
}

// printEnv writes assignments for a shell. No value needs quotes.
func printEnv(out io.Writer, r detect.Result) error {
	_, err := fmt.Fprintf(out, "IPTABLES_MODE=%s\nIPTABLES_REASON=%s\nIPTABLES_CONCLUSIVE=%t\n", r.Mode, r.Reason, r.Conclusive)
	return err
}

// printNFD writes a feature file for the local source of Node Feature Discovery, which makes the labels
// feature.node.kubernetes.io/iptables.mode and so on of it. A guess is no feature of the node, so it makes none of it.
func printNFD(out io.Writer, r detect.Result) error {
	mode := string(r.Mode)
	if !r.Conclusive {
		mode = "unknown"
	}
	_, err := fmt.Fprintf(out, "iptables.mode=%s\niptables.reason=%s\niptables.conclusive=%t\n", mode, r.Reason, r.Conclusive)
	return err
}

// width is how wide a terminal is at the least.
const width = 80

func printTable(out io.Writer, r detect.Result) error {
	_, err := io.WriteString(out, table(r, painter(out)))
	return err
}

// table is a result for people: the decision and its reason first, in no line more than a terminal holds.
func table(r detect.Result, paint func(color, line string) string) string {
	var b strings.Builder
	b.WriteString(fold(fmt.Sprintf("%s, because %s", r.Mode, because(r)), 0, bold, paint))
	if r.Conclusive {
		b.WriteString(fold(fmt.Sprintf("conclusive (%s)", r.Reason), 0, green, paint))
	} else {
		b.WriteString(fold(fmt.Sprintf("not conclusive (%s): %s", r.Reason, doubt(r)), 0, yellow, paint))
	}

	const row = "%-7s  %-6s  %-14s  %-14s  %-14s  %s"
	fmt.Fprintf(&b, "\n"+row+"\n", "BACKEND", "FAMILY", "IN KERNEL", "HINT", "CANARY", "RULES")
	for _, e := range r.Evidence {
		fmt.Fprintf(&b, row+"\n", e.Backend, e.Family, e.Supported, e.Hint, e.Canary, number(e.Rules))
		for _, table := range e.Tables {
			fmt.Fprintf(&b, "%17s%-46s  %s\n", "", table.Name, number(table.Rules))
		}
	}
	for _, e := range r.Evidence {
		if e.Err != nil {
			b.WriteString("\n" + fold(fmt.Sprintf("%s %s: %s", e.Backend, e.Family, advise(e.Err)), 2, yellow, paint))
		}
	}
	for _, c := range r.Conflicts {
		b.WriteString("\n" + fold("conflict: "+explain(c), 2, red, paint))
	}
	return b.String()
}

// The colours of the table, as ECMA-48 has them.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	normal = "\x1b[0m"
)

// painter returns a function that colours a line: on a terminal only, and not where NO_COLOR is set (no-color.org).
func painter(out io.Writer) func(color, line string) string {
	plain := func(_, line string) string { return line }
	if a, ok := out.(*answers); ok {
		out = a.Writer
	}
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return plain
	}
	if _, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS); err != nil {
		return plain
	}
	return func(color, line string) string { return color + line + normal }
}

// fold breaks a sentence between words, indents all lines but the first, and ends each.
func fold(text string, indent int, color string, paint func(color, line string) string) string {
	var lines strings.Builder
	line := ""
	flush := func() {
		lines.WriteString(paint(color, line) + "\n")
		line = strings.Repeat(" ", indent)
	}
	for i, word := range strings.Fields(text) {
		for rest := []rune(word); len(rest) > width-indent; word = string(rest) { // a path: it is broken where it must be
			if strings.TrimSpace(line) != "" {
				flush()
			}
			room := width - len(line)
			line += string(rest[:room])
			rest = rest[room:]
			flush()
		}
		switch {
		case i == 0 || strings.TrimSpace(line) == "":
			line += word
		case len(line)+1+len(word) > width:
			flush()
			line += word
		default:
			line += " " + word
		}
	}
	flush()
	return lines.String()
}

// number is a count that is exact, or "?".
func number(c detect.Count) string {
	if c.Min != c.Max {
		return "?"
	}
	return fmt.Sprint(c.Min)
}

// jsonVersion goes up when something in docs/detect.schema.json changes its meaning or goes away.
const jsonVersion = 1

// The JSON form of a result, as docs/detect.schema.json defines it. A number of rules is null where it could not be told.
type (
	jsonResult struct {
		Version    int               `json:"version"`
		Mode       detect.Mode       `json:"mode"`
		Reason     detect.Reason     `json:"reason"`
		Conclusive bool              `json:"conclusive"`
		Evidence   []jsonEvidence    `json:"evidence"`
		Conflicts  []detect.Conflict `json:"conflicts"`
	}
	jsonEvidence struct {
		Backend   detect.Mode   `json:"backend"`
		Family    detect.Family `json:"family"`
		Supported string        `json:"supported"`
		Hint      string        `json:"hint"`
		Canary    string        `json:"canary"`
		Rules     *int          `json:"rules"`
		Tables    []jsonTable   `json:"tables"`
		Error     string        `json:"error,omitempty"`
	}
	jsonTable struct {
		Name  string `json:"name"`
		Rules *int   `json:"rules"`
	}
)

func printJSON(out io.Writer, r detect.Result) error {
	return encode(out, asJSON(r))
}

// encode writes what is for machines.
func encode(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

func asJSON(r detect.Result) jsonResult {
	result := jsonResult{jsonVersion, r.Mode, r.Reason, r.Conclusive, []jsonEvidence{}, append([]detect.Conflict{}, r.Conflicts...)}
	for _, e := range r.Evidence {
		evidence := jsonEvidence{
			Backend: e.Backend, Family: e.Family,
			Supported: e.Supported.String(), Hint: e.Hint.String(), Canary: e.Canary.String(),
			Rules: exact(e.Rules), Tables: []jsonTable{},
		}
		for _, t := range e.Tables {
			evidence.Tables = append(evidence.Tables, jsonTable{t.Name, exact(t.Rules)})
		}
		if e.Err != nil {
			evidence.Error = advise(e.Err)
		}
		result.Evidence = append(result.Evidence, evidence)
	}
	return result
}

func exact(c detect.Count) *int {
	if c.Min != c.Max {
		return nil
	}
	return &c.Min
}
