// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The picture: rules from left to right, a step for each count, as 0 has no place on a logarithmic axis; cost from bottom
// to top, logarithmic.
const (
	width, height            = 760, 440
	left, right, top, bottom = 85, 215, 30, 50
	lowest, highest          = 0.5, 50_000.0 // milliseconds
)

func x(i, counts int) float64 { return left + float64(i)*(width-left-right)/float64(max(counts-1, 1)) }

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

// picture is docs/evidence/benchmarks.svg. Its colours change with those of the page it is on.
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
	var counts []int
	for _, m := range r.Measurements {
		if !slices.Contains(counts, m.State.Rules) {
			counts = append(counts, m.State.Rules)
		}
	}
	for i, n := range counts {
		p(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x(i, len(counts)), height-bottom+20, thousands(n))
	}
	p(`<text x="%d" y="%d" text-anchor="middle">rules on the host</text>`, (left+width-right)/2, height-10)
	p(`<text x="%d" y="18">what a first call costs over the direct call</text>`, left)

	first := func(m measurement) float64 { return m.First.More }
	saves := func(m measurement) float64 { return m.FourSaves.Wall }
	lines := []line{
		{"four saves, nft", "saves", saves, state{Mode: "nft", Hint: true}},
		{"four saves, legacy", "saves dotted", saves, state{Mode: "legacy", Hint: true}},
		{"no hint, nft", "b", first, state{Mode: "nft"}},
		{"no hint, legacy", "b dotted", first, state{Mode: "legacy"}},
		{"hint in nft", "a", first, state{Mode: "nft", Hint: true}},
		{"hint in legacy", "a dotted", first, state{Mode: "legacy", Hint: true}},
		{"floor", "floor", func(m measurement) float64 { return m.Floor.More }, state{Mode: "nft", Hint: true}},
	}
	for i, l := range lines {
		var points []string
		for j, n := range counts {
			l.state.Rules = n
			for _, m := range r.Measurements {
				if m.State == l.state {
					points = append(points, fmt.Sprintf("%.1f %.1f", x(j, len(counts)), y(l.value(m))))
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
