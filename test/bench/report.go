// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
)

// page is docs/evidence/benchmarks.md.
func page(r report) []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Benchmarks")
	p("")
	p("Written by `make bench` on %s. Linux %s, %s processors, %s; %s; %s; %s; built with %s.", r.Date, r.Kernel, r.Processors,
		r.CPU, r.Wrapper, r.NFT, r.Legacy, r.Go)
	p("")
	p("![cost against rules](benchmarks.svg)")
	p("")
	p("Each host is a network namespace of its own, with rules as kube-proxy writes them in the backend that it uses. In turns,")
	p("%d times each: the direct call (`xtables-nft-multi` or `xtables-legacy-multi` as `iptables --version`), the same through", r.Runs)
	p("the wrapper, and the same through the *floor*, a static Go program that only calls execve. *First* is a first call, which")
	p("replaces the switch; *read-only* is a first call on a read-only root, and *with a memory* any later one. *Four saves* is how others detect the backend:")
	p("`iptables-nft-save`, `ip6tables-nft-save`, `iptables-legacy-save` and `ip6tables-legacy-save`.")
	p("")
	p("## Wall time")
	p("")
	p("Medians in milliseconds, with the middle half in brackets. For the wrapped calls and the floor: the difference to the")
	p("direct call of the same round, and the ratio to the floor's.")
	p("")
	p("Targets: at most %.2f× the floor with a hint, and %.2f× without.", targetHint, targetOther)
	p("%s", r.reached(true))
	p("%s", r.reached(false))
	p("")
	p("| host | rules | direct | floor | first | read-only | with a memory | four saves |")
	p("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, m := range r.Measurements {
		over := func(s sample) string {
			return fmt.Sprintf("+%.2f [%.2f–%.2f]", s.More, s.MoreLow, s.MoreHigh)
		}
		ratio := func(s sample) string {
			if s.Wall == 0 {
				return "not measured"
			}
			return fmt.Sprintf("%s, %.2f×", over(s), s.ratio())
		}
		p("| %s | %s | %.2f [%.2f–%.2f] | %s | %s | %s | %s | %s |", m.State, thousands(m.State.Rules), m.Direct.Wall, m.Direct.Low, m.Direct.High,
			over(m.Floor), ratio(m.First), ratio(m.ReadOnly), ratio(m.Remembered), milliseconds(m.FourSaves.Wall))
	}
	for _, m := range r.Measurements {
		if m.Adding.Wall > 0 {
			p("")
			p("Where there is no evidence, the first call that can add something asks nf_tables for a dry run and makes a memory, once in the")
			p("life of a container: `iptables -P INPUT ACCEPT` takes +%.2f ms. `iptables --version`, which asks less, takes +%.2f ms.",
				m.Adding.Wall-m.DirectAdding.Wall, m.ReadOnly.More)
		}
	}
	p("")
	p("## Where it goes")
	p("")
	p("The difference to the direct call, as medians over all hosts with a hint. Every call starts the binary that contains the")
	p("command line; the cost of its package is measured by building without it.")
	p("")
	p("| part | ms | page faults |")
	p("| --- | ---: | ---: |")
	part := func(name string, ms func(measurement) float64, of, than func(measurement) sample) {
		p("| %s | %.2f | %.0f |", name, r.median(ms), r.median(func(m measurement) float64 { return of(m).Faults - than(m).Faults }))
	}
	direct := func(m measurement) sample { return m.Direct }
	floor := func(m measurement) sample { return m.Floor }
	noCLI := func(m measurement) sample { return m.NoCLI }
	readOnly := func(m measurement) sample { return m.ReadOnly }
	first := func(m measurement) sample { return m.First }
	part("starting any static Go program, and execve (the floor)", func(m measurement) float64 { return m.Floor.More }, floor, direct)
	part("detection, finding the program, and all else that is ours",
		func(m measurement) float64 { return m.NoCLI.More - m.NoCLI.Floor }, noCLI, floor)
	part("linking github.com/urfave/cli/v2", func(m measurement) float64 { return m.ReadOnly.More - m.NoCLI.More }, readOnly, noCLI)
	part("replacing the switch", func(m measurement) float64 {
		return m.First.More - m.First.Floor - (m.ReadOnly.More - m.ReadOnly.Floor)
	}, first, readOnly)
	if r.Before != "" {
		p("")
		p("Before, in revision %s, a call on a read-only root cost %.2f ms more than now, and %.0f page faults.", r.Before,
			r.median(func(m measurement) float64 { return m.Before.More - m.ReadOnly.More }),
			r.median(func(m measurement) float64 { return m.Before.Faults - m.ReadOnly.Faults }))
	}
	p("")
	p("### What runs before main")
	p("")
	p("From `GODEBUG=inittrace=1`. Packages that allocate nothing and take no measurable time are left out. A test keeps the")
	p("packages of this module from allocating anything before a wrapped call.")
	p("")
	p("| package | ms | allocations | bytes | linked because of |")
	p("| --- | ---: | ---: | ---: | --- |")
	for _, i := range r.Measurements[0].Inits.Wrapper {
		if i.Clock >= 0.001 || i.Allocations > 0 {
			p("| %s | %.3f | %d | %s | %s |", i.Package, i.Clock, i.Allocations, thousands(i.Bytes), r.Measurements[0].Inits.because(i))
		}
	}
	p("")
	p("### What is mapped")
	p("")
	p("In bytes. A page costs nothing until it is touched.")
	p("")
	p("| program | code | tables of the runtime | other read-only | writable |")
	p("| --- | ---: | ---: | ---: | ---: |")
	for _, name := range []string{"floor", "without the command line", "wrapper"} {
		s := r.Sections[name]
		p("| %s | %s | %s | %s | %s |", name, thousands(s[".text"]), thousands(s[".gopclntab"]), thousands(s["read-only"]), thousands(s["writable"]))
	}
	p("")
	p("## Processor time")
	p("")
	p("User and system time in milliseconds.")
	p("")
	p("| host | rules | direct | first | read-only | four saves |")
	p("| --- | ---: | ---: | ---: | ---: | ---: |")
	for _, m := range r.Measurements {
		p("| %s | %s | %.2f | %.2f | %.2f | %s |", m.State, thousands(m.State.Rules), m.Direct.CPU, m.First.CPU, m.ReadOnly.CPU, milliseconds(m.FourSaves.CPU))
	}
	p("")
	p("## Memory and system calls")
	p("")
	p("*MiB*, *direct* and *one save* are the largest resident set, at least that of the measuring process. *Calls* are the system")
	p("calls until iptables begins, the runtime's threads included; *questions* are those to the kernel's firewall. The wrapper")
	p("starts no process; four saves are four.")
	p("")
	p("| host | rules | MiB | direct | one save | calls | floor | four saves | questions |")
	p("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, m := range r.Measurements {
		saveCalls := "not counted"
		if m.SaveCalls > 0 {
			saveCalls = thousands(m.SaveCalls)
		}
		p("| %s | %s | %.1f | %.1f | %.1f | %d | %d | %s | %d |", m.State, thousands(m.State.Rules), float64(m.Memory)/1024,
			float64(m.DirectMemory)/1024, float64(m.SaveMemory)/1024, m.Calls, m.FloorCalls, saveCalls, m.Questions)
	}
	p("")
	p("## Size")
	p("")
	p("| architecture | bytes |")
	p("| --- | ---: |")
	for _, arch := range slices.Sorted(maps.Keys(r.Sizes)) {
		p("| %s | %s |", arch, thousands(r.Sizes[arch]))
	}
	return b.Bytes()
}

// Targets, in times of the floor: with a hint, and where rules are counted.
const targetHint, targetOther = 1.35, 1.5

// reached says how far the wrapped calls are from their target.
func (r report) reached(hint bool) string {
	var ratios []float64
	for _, m := range r.Measurements {
		if m.State.Hint == hint {
			ratios = append(ratios, m.First.ratio(), m.ReadOnly.ratio(), m.Remembered.ratio())
		}
	}
	slices.Sort(ratios)
	what, target := "With a hint", targetHint
	if !hint {
		what, target = "Without", targetOther
	}
	missed := len(ratios) - len(slices.DeleteFunc(slices.Clone(ratios), func(ratio float64) bool { return ratio > target }))
	return fmt.Sprintf("%s, %d of %d calls cost more than that; the ratios are from %.2f to %.2f, with a median of %.2f.",
		what, missed, len(ratios), ratios[0], ratios[len(ratios)-1], ratios[len(ratios)/2])
}

// sentence is what the README says.
func sentence(r report) string {
	least, most := math.Inf(1), 0.0
	for _, m := range r.Measurements {
		if m.State.Rules > 0 || m.State.Hint {
			least, most = min(least, m.First.More), max(most, m.First.More)
		}
	}
	saves := func(rules int) float64 {
		slowest := 0.0
		for _, m := range r.Measurements {
			if m.State.Rules == rules {
				slowest = max(slowest, m.FourSaves.Wall)
			}
		}
		return slowest
	}
	none, many := r.Measurements[0].State.Rules, r.Measurements[len(r.Measurements)-1].State.Rules
	return fmt.Sprintf("A first call costs %.1f to %.1f ms more than a direct one if the host has a hint or rules, however many; %.1f ms of it is the start of "+
		"any static Go program. Detecting with four `iptables-save` processes costs %s ms with %s rules and up to %.1f s with %s.",
		least, most, r.median(func(m measurement) float64 { return m.Floor.More }), milliseconds(saves(none)), thousands(none),
		saves(many)/1000, thousands(many))
}

func (s sample) ratio() float64 { return s.More / s.Floor }

// median is over the hosts with a hint.
func (r report) median(value func(measurement) float64) float64 {
	var values []float64
	for _, m := range r.Measurements {
		if m.State.Hint {
			values = append(values, value(m))
		}
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// because says on whose account a package does what it does: of the smallest program in which it does as much, by and large.
func (i inits) because(of initialisation) string {
	as := func(i initialisation) bool { return i.Package == of.Package && 2*i.Allocations >= of.Allocations }
	switch {
	case slices.ContainsFunc(i.Floor, as):
		return "any Go program"
	case slices.ContainsFunc(i.NoCLI, as):
		return "the wrapper"
	default:
		return "github.com/urfave/cli/v2"
	}
}

func milliseconds(ms float64) string {
	if ms < 100 {
		return fmt.Sprintf("%.1f", ms)
	}
	return thousands(int(ms + 0.5))
}

func thousands[N int | int64](n N) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
