// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// more is what a call costs over the direct one, in milliseconds of wall time.
func (m measurement) more(s sample) float64 { return s.Wall - m.Direct.Wall }

// page is docs/benchmarks.md.
func page(r report) []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# What a call costs")
	p("")
	p("Written by `make bench` on %s. Linux %s, %s processors, %s; %s; %s; %s; built with %s.", r.Date, r.Kernel, r.Processors,
		r.CPU, r.Wrapper, r.NFT, r.Legacy, r.Go)
	p("")
	p("![cost against rules](benchmarks.svg)")
	p("")
	p("Each host is a network namespace of its own, with rules as kube-proxy writes them in the backend that it uses. In turns,")
	p("%d times each: the direct call (`xtables-nft-multi` or `xtables-legacy-multi` as `iptables --version`), the same through", r.Runs)
	p("the wrapper, and the same through the *floor*, an empty static Go program that does nothing but execve. *First* is a")
	p("first call, which moves the links; *read-only* is every call on a read-only root. *Four saves* is what others do to look:")
	p("`iptables-nft-save`, `ip6tables-nft-save`, `iptables-legacy-save`, `ip6tables-legacy-save`.")
	p("")
	p("## Wall time")
	p("")
	p("Medians in milliseconds; in brackets the middle half. The wrapped calls and the floor are given as what they cost over the")
	p("direct call, with the ratio to the floor.")
	p("")
	p("| host | rules | direct | floor | first | read-only | four saves |")
	p("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, m := range r.Measurements {
		over := func(s sample) string {
			return fmt.Sprintf("+%.2f [%.2f–%.2f]", m.more(s), s.Low-m.Direct.Wall, s.High-m.Direct.Wall)
		}
		ratio := func(s sample) string { return fmt.Sprintf("%s, %.1f×", over(s), m.more(s)/m.more(m.Floor)) }
		p("| %s | %s | %.2f [%.2f–%.2f] | %s | %s | %s | %s |", m.State, thousands(m.State.Rules), m.Direct.Wall, m.Direct.Low, m.Direct.High,
			over(m.Floor), ratio(m.First), ratio(m.ReadOnly), milliseconds(m.FourSaves.Wall))
	}
	p("")
	p("## Where it goes")
	p("")
	p("Over the direct call, in milliseconds, medians over all hosts with a hint. The command line is in the binary that every call")
	p("starts: what its package costs is measured by building without it.")
	p("")
	p("| part | ms |")
	p("| --- | ---: |")
	part := func(name string, value func(measurement) float64) {
		var values []float64
		for _, m := range r.Measurements {
			if m.State.Hint {
				values = append(values, value(m))
			}
		}
		slices.Sort(values)
		p("| %s | %.2f |", name, values[len(values)/2])
	}
	part("starting any static Go program, and execve (the floor)", func(m measurement) float64 { return m.more(m.Floor) })
	part("a larger program with more to initialise, detection, finding the program", func(m measurement) float64 { return m.NoCLI.Wall - m.Floor.Wall })
	part("linking github.com/urfave/cli/v2", func(m measurement) float64 { return m.ReadOnly.Wall - m.NoCLI.Wall })
	part("moving six links", func(m measurement) float64 { return m.First.Wall - m.ReadOnly.Wall })
	p("")
	p("## Processor time, memory, system calls")
	p("")
	p("User and system time in milliseconds; the largest resident set in MiB, which is at least that of the process that measures;")
	p("system calls from the start to iptables' own (the runtime's threads included), and questions to the kernel's firewall")
	p("among them. The wrapper starts no process.")
	p("")
	p("| host | rules | direct | first | read-only | four saves | memory | of direct | of one save | calls | of the floor | questions |")
	p("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, m := range r.Measurements {
		p("| %s | %s | %.2f | %.2f | %.2f | %s | %.1f | %.1f | %.1f | %d | %d | %d |", m.State, thousands(m.State.Rules), m.Direct.CPU, m.First.CPU,
			m.ReadOnly.CPU, milliseconds(m.FourSaves.CPU), float64(m.Memory)/1024, float64(m.DirectMemory)/1024, float64(m.SaveMemory)/1024,
			m.Calls, m.FloorCalls, m.Questions)
	}
	p("")
	p("## Size")
	p("")
	p("| architecture | bytes |")
	p("| --- | ---: |")
	for _, arch := range slices.Sorted(maps.Keys(r.Sizes)) {
		p("| %s | %s |", arch, thousands(int(r.Sizes[arch])))
	}
	return b.Bytes()
}

func milliseconds(ms float64) string {
	if ms < 100 {
		return fmt.Sprintf("%.1f", ms)
	}
	return thousands(int(ms + 0.5))
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// The picture: rules from left to right, a step for each count, as 0 has no place on a logarithmic axis; cost from bottom
// to top, logarithmic.
const (
	width, height            = 760, 440
	left, right, top, bottom = 85, 215, 30, 50
	lowest, highest          = 0.5, 50_000.0 // milliseconds
)

func x(i int) float64 { return left + float64(i)*(width-left-right)/float64(len(ruleCounts)-1) }

func y(ms float64) float64 {
	share := math.Log(max(ms, lowest)/lowest) / math.Log(highest/lowest)
	return height - bottom - share*(height-top-bottom)
}

// line is one curve.
type line struct {
	label, class string
	value        func(measurement) float64
	state        state // without the rules
}

// picture is docs/benchmarks.svg. Its colours change with those of the page it is on.
func picture(r report) []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="cost of a call against the number of rules">`, width, height, width, height)
	p(`<style>
text { font: 13px sans-serif; fill: #24292f }
.axis { stroke: #8c959f; stroke-width: 1 } .grid { stroke: #8c959f; stroke-width: .3 }
path { fill: none; stroke-width: 2.5 }
.a { stroke: #0969da } .b { stroke: #8250df } .saves { stroke: #cf222e } .floor { stroke: #6e7781; stroke-dasharray: 5 4 }
.dotted { stroke-dasharray: 2 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .a { stroke: #58a6ff } .b { stroke: #d2a8ff } .saves { stroke: #ff7b72 } .floor { stroke: #9198a1 }
}
</style>`)
	for _, ms := range []float64{1, 10, 100, 1_000, 10_000} {
		p(`<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, width-right, y(ms), y(ms))
		p(`<text x="%d" y="%.1f" text-anchor="end">%s ms</text>`, left-8, y(ms)+4, thousands(int(ms)))
	}
	p(`<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, left, width-right, height-bottom, height-bottom)
	for i, n := range ruleCounts {
		p(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x(i), height-bottom+20, thousands(n))
	}
	p(`<text x="%d" y="%d" text-anchor="middle">rules on the host</text>`, (left+width-right)/2, height-10)
	p(`<text x="%d" y="18">what a first call costs over the direct call</text>`, left)

	first := func(m measurement) float64 { return m.more(m.First) }
	saves := func(m measurement) float64 { return m.FourSaves.Wall }
	lines := []line{
		{"four saves, nft", "saves", saves, state{Mode: "nft", Hint: true}},
		{"four saves, legacy", "saves dotted", saves, state{Mode: "legacy", Hint: true}},
		{"no hint, nft", "b", first, state{Mode: "nft"}},
		{"no hint, legacy", "b dotted", first, state{Mode: "legacy"}},
		{"hint in nft", "a", first, state{Mode: "nft", Hint: true}},
		{"hint in legacy", "a dotted", first, state{Mode: "legacy", Hint: true}},
		{"floor", "floor", func(m measurement) float64 { return m.more(m.Floor) }, state{Mode: "nft", Hint: true}},
	}
	for i, l := range lines {
		var points []string
		for j, n := range ruleCounts {
			l.state.Rules = n
			for _, m := range r.Measurements {
				if m.State == l.state {
					points = append(points, fmt.Sprintf("%.1f %.1f", x(j), y(l.value(m))))
				}
			}
		}
		p(`<path class="%s" d="M%s"/>`, l.class, strings.Join(points, " L"))
		// The curves of the wrapper lie on each other, so the names stand in a list.
		at := top + 20 + 24*i
		p(`<path class="%s" d="M%d %d h30"/><text x="%d" y="%d">%s</text>`, l.class, width-right+25, at, width-right+63, at+4, l.label)
	}
	p(`</svg>`)
	return b.Bytes()
}
