// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/iptables-wrappers/iptables-wrappers/test/bench/measure"
)

// shades are the bars' colors, from the smallest count to the largest. They can be told apart without seeing colors.
var shades = []color.Color{
	color.RGBA{R: 0x9e, G: 0xca, B: 0xe1, A: 0xff},
	color.RGBA{R: 0x4f, G: 0x97, B: 0xc9, A: 0xff},
	color.RGBA{R: 0x1f, G: 0x63, B: 0xa5, A: 0xff},
	color.RGBA{R: 0x08, G: 0x2f, B: 0x5c, A: 0xff},
}

const (
	barWidth = 9  // points
	fontSize = 10 // points
)

// picture is docs/evidence/benchmarks.svg: the wall time that a first call adds, with rules in one chain on the left,
// and with chains of one rule on the right, on one scale from 0. Bars stand for the counts, because no axis has a place
// for both 0 and 100,000. It brings its white background along, and so can be read on a dark page.
func picture(r report) ([]byte, error) {
	plots := [][]*plot.Plot{{plot.New(), plot.New()}}
	legend := plot.NewLegend()
	most := 1.0 // where -only leaves no bar
	for side, p := range plots[0] {
		p.Title.Text = []string{"rules in one chain", "chains of one rule"}[side]
		p.X.Label.Text = "added, in ms: median (95 % interval)"
		p.X.Min, p.X.Tick.Marker = 0, plot.TickerFunc(ticks)
		p.Title.TextStyle.Font.Size, p.X.Label.TextStyle.Font.Size = fontSize, fontSize
		p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = fontSize, fontSize
		p.Y.Padding = 3 * fontSize // a browser's font may be wider than the one that gonum knows
		groups := groupsOf(side == 1)
		for i, count := range counts {
			bars, err := bars(r, groups, i)
			if err != nil {
				return nil, err
			}
			p.Add(bars.chart, bars.labels)
			most = max(most, bars.most)
			if side == 0 {
				legend.Add(thousands(count/r.Scale), bars.chart)
			}
		}
		var names []string
		for _, g := range groups {
			names = append(names, g.label)
		}
		p.NominalY(names...)
	}
	for _, p := range plots[0] {
		p.X.Max = 1.45 * most // with the labels
	}
	legend.Top, legend.Left, legend.TextStyle.Font.Size, legend.Padding = true, true, fontSize, fontSize/3

	const width, height, top = 30 * vg.Centimeter, 13 * vg.Centimeter, 2.6 * vg.Centimeter
	svg := vgsvg.New(width, height)
	canvas := draw.New(svg)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	tiles := plot.Align(plots, draw.Tiles{Rows: 1, Cols: 2}, draw.Crop(canvas, 0, 0, 0, -top))
	for i, tile := range tiles[0] {
		plots[0][i].Draw(tile)
	}
	legend.Draw(draw.Crop(canvas, vg.Centimeter/2, 0, height-top, -vg.Centimeter/4))
	font := plots[0][0].X.Label.TextStyle.Font
	font.Size = fontSize
	style := draw.TextStyle{Color: color.Black, Font: font, Handler: plot.DefaultTextHandler}
	for i, line := range notes {
		canvas.FillText(style, vg.Point{X: 4 * vg.Centimeter, Y: height - vg.Points(float64(20+15*i))}, line)
	}
	var b bytes.Buffer
	_, err := svg.WriteTo(&b)
	return b.Bytes(), err
}

// ticks are gonum's, with no decimals that say nothing.
func ticks(low, high float64) []plot.Tick {
	all := plot.DefaultTicks{}.Ticks(low, high)
	for i := range all {
		if all[i].Label != "" {
			all[i].Label = fmt.Sprintf("%g", all[i].Value)
		}
	}
	return all
}

var notes = []string{
	"The wall time that a first call through the wrapper adds to a direct one, by the number of rules or chains.",
	"An empty Go program does nothing but execve: it is the least that any wrapper in Go costs.",
	"With nothing on the host, the call waits for the kernel's answer to a dry run. Legacy tables above 4 MiB",
	"(about 20,000 rules) are not read: so 100,000 rules cost less than 20,000.",
}

// group is the bars of one situation.
type group struct {
	label, program string
	curve          curve
}

// groupsOf are the groups of a plot, from its bottom up.
func groupsOf(chains bool) (groups []group) {
	for _, c := range curves {
		if c.chains == chains {
			groups = append([]group{{c.name, "wrapped", c}}, groups...)
		}
	}
	empty := groups[len(groups)-1].curve
	return append([]group{{"empty Go program", "floor", empty}}, groups...)
}

// series is the bars of one count.
type series struct {
	chart  *plotter.BarChart
	labels *plotter.Labels
	most   float64
}

func bars(r report, groups []group, i int) (series, error) {
	values := make(plotter.Values, len(groups))
	labels := plotter.XYLabels{}
	for y, g := range groups {
		s, found := adds(r, g, counts[i]/r.Scale)
		if !found {
			continue
		}
		values[y] = max(s.Center, 0)
		labels.XYs = append(labels.XYs, plotter.XY{X: values[y], Y: float64(y)})
		labels.Labels = append(labels.Labels, fmt.Sprintf("%.1f (%.1f–%.1f)", s.Center, s.Lo, s.Hi))
	}
	chart, err := plotter.NewBarChart(values, vg.Points(barWidth))
	if err != nil {
		return series{}, err
	}
	chart.Horizontal, chart.Color, chart.LineStyle.Width = true, shades[i], 0
	// the smallest count is at the top of its group
	chart.Offset = vg.Points(barWidth * (float64(len(counts)-1)/2 - float64(i)))
	text, err := plotter.NewLabels(labels)
	if err != nil {
		return series{}, err
	}
	text.Offset = vg.Point{X: vg.Points(3), Y: chart.Offset - vg.Points(3)}
	for n := range text.TextStyle {
		text.TextStyle[n].Font.Size = vg.Points(7)
	}
	return series{chart, text, slices.Max(values)}, nil
}

// adds is what a program adds to the direct call's wall time.
func adds(r report, g group, count int) (benchmath.Summary, bool) {
	for _, m := range r.Results {
		if m.Row.Name == g.curve.row(count).Name && m.Samples[g.program] != nil {
			return summary(over(m, g.program, measure.Wall)), true
		}
	}
	return benchmath.Summary{}, false
}
