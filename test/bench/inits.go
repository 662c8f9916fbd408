// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// initialisation is what one package does before main, as GODEBUG=inittrace=1 tells.
type initialisation struct {
	Package     string
	Clock       float64 // milliseconds
	Bytes       int
	Allocations int
}

// inits are the initialisations of each program, in their order.
type inits struct{ Floor, NoCLI, Wrapper []initialisation }

// traceInits takes medians, on the way to an iptables program.
func traceInits(program string, runs int) (all inits, err error) {
	for to, args := range map[*[]initialisation][]string{
		&all.Floor:   {"/usr/sbin/floor", program, "iptables", "--version"},
		&all.NoCLI:   {"/usr/sbin/no-cli/iptables", "--version"},
		&all.Wrapper: {"/usr/sbin/iptables", "--version"},
	} {
		var traces [][]initialisation
		for range runs {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = []string{"GODEBUG=inittrace=1"}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil {
				return all, fmt.Errorf("%s: %w", cmd, err)
			}
			trace, err := parseInits(stderr.Bytes())
			if err != nil {
				return all, err
			}
			traces = append(traces, trace)
		}
		*to = middle(traces)
	}
	return all, nil
}

// parseInits reads lines such as "init os @0.45 ms, 0.023 ms clock, 432 bytes, 9 allocs".
func parseInits(trace []byte) (all []initialisation, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(trace)); lines.Scan(); {
		var i initialisation
		var at float64
		if !strings.HasPrefix(lines.Text(), "init ") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "init %s @%f ms, %f ms clock, %d bytes, %d allocs",
			&i.Package, &at, &i.Clock, &i.Bytes, &i.Allocations); err != nil {
			return nil, fmt.Errorf("GODEBUG=inittrace=1 says %q: %w", lines.Text(), err)
		}
		all = append(all, i)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("GODEBUG=inittrace=1 says nothing: %w", os.ErrInvalid)
	}
	return all, nil
}

// middle returns the first trace with the median of each clock.
func middle(traces [][]initialisation) []initialisation {
	all := slices.Clone(traces[0])
	for i := range all {
		var clocks []float64
		for _, trace := range traces {
			at := slices.IndexFunc(trace, func(other initialisation) bool { return other.Package == all[i].Package })
			if at >= 0 {
				clocks = append(clocks, trace[at].Clock)
			}
		}
		slices.Sort(clocks)
		all[i].Clock = clocks[len(clocks)/2]
	}
	return all
}
