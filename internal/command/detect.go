// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

func detectBackend(c *cli.Context) error {
	output := c.String("output")
	r, err := printAnswer(c.App.Writer, output)
	if err != nil || r.Certain {
		return err
	}
	guess := fmt.Errorf("%w: %s", remedy.ErrUncertain, r.Because())
	if c.Bool("strict") {
		return cli.Exit(guess, statusUncertain)
	}
	if output == "text" { // the other formats contain it
		say(c.App.ErrWriter, "%v", guess)
	}
	return nil
}

// printAnswer prints the result. For text it asks what a call asks, for the other formats everything.
func printAnswer(w io.Writer, output string) (detect.Result, error) {
	if output == "text" {
		r, _ := detect.Host("") // r.Because has the error, too
		printLine(w, "%s", r.Backend)
		return r, nil
	}
	r, err := detect.Survey()
	path, _ := run.InPath("iptables")
	rep := report{Version: 1, onHost: newHost(r), Here: look.At(path).Plan(look.Here(r, err))}
	if output == "json" {
		return r, printJSON(w, rep)
	}
	printTable(w, rep)
	return r, nil
}

// report is the JSON that detect prints: docs/detect.schema.json. Within a version, fields and words may be added; none
// changes or is removed. Questions that were not asked are left out.
type report struct {
	Version int `json:"version"`
	onHost
	Here plan.Plan `json:"here"`
}

// onHost is what the host uses, with its texts.
type onHost struct {
	detect.Result
	Because string                    `json:"because"`
	Errors  map[detect.Backend]string `json:"errors,omitempty"` // what could not be asked
}

func newHost(r detect.Result) onHost {
	h := onHost{Result: r, Because: r.Because(), Errors: map[detect.Backend]string{}}
	for _, b := range detect.Backends() {
		err := r.Evidence.Of(b).Err
		if err != nil {
			h.Errors[b] = err.Error()
		}
	}
	return h
}

// String returns one line for people: "legacy (not certain: no chain or table of a known program was found)".
func (h onHost) String() string {
	certain := "certain"
	if !h.Certain {
		certain = "not certain"
	}
	return fmt.Sprintf("%s (%s: %s)", h.Backend, certain, h.Because)
}

func printTable(w io.Writer, rep report) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer t.Flush()
	e := rep.Evidence
	printLine(t, "host:           %s", rep.onHost)
	printLine(t, "iptables here:  %s", rep.Here)

	printLine(t, "")
	printLine(t, "BACKEND\tKERNEL\tRULES")
	for _, b := range detect.Backends() {
		f := e.Of(b)
		printLine(t, "%s\t%s\t%s", b, f.Kernel, e.Number(b))
	}

	printLine(t, "")
	printLine(t, "BACKEND\tFAMILY\tHINT\tCANARY\tPROGRAM")
	for _, b := range detect.Backends() {
		f := e.Of(b)
		for _, i := range [...]detect.Family{detect.IPv4, detect.IPv6} {
			printLine(t, "%s\t%s\t%s\t%s\t%s", b, i, f.Hint[i], f.Canary[i], f.Program[i])
		}
	}

	if len(e.NFT.Markers)+len(e.Legacy.Markers) > 0 {
		printLine(t, "")
		printLine(t, "MARKER OF\tBACKEND\tFAMILY\tTABLE\tCHAIN")
	}
	for _, b := range detect.Backends() {
		for _, n := range e.Of(b).Markers {
			printLine(t, "%s\t%s\t%s\t%s\t%s", n.Program, b, n.Family, n.Table, cmp.Or(n.Chain, "-"))
		}
	}

	printLine(t, "")
	printLine(t, "KERNEL: the running kernel has nf_tables, or has x_tables loaded.")
	printLine(t, "RULES: of both families, in the tables of iptables, whoever made them.")
	printLine(t, "HINT, CANARY, PROGRAM: a chain of kubelet, or a chain or table of another program of the host.")
	if e.Lacks != "" {
		printLine(t, "nf_tables cannot take iptables' rules: it lacks %s.", e.Lacks)
	}
	for _, b := range detect.Backends() {
		if rep.Errors[b] != "" {
			printLine(t, "%s: %s", b, rep.Errors[b])
		}
	}
}
