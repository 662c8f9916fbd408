// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/iptables-wrappers/iptables-wrappers/test/bench/measure"
)

// picture is docs/evidence/benchmarks.svg: cost against rules on the left, against chains on the right, on one scale.
func picture(r report) ([]byte, error) {
	var labels []string
	for _, count := range counts {
		labels = append(labels, thousands(count/r.Scale))
	}
	plots := [][]*plot.Plot{{plot.New(), plot.New()}}
	for side, p := range plots[0] {
		p.Title.Text = []string{"rules in one chain", "chains of one rule"}[side]
		p.Y.Label.Text = "first call over a direct one, ms"
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Legend.Top, p.Legend.Left = true, true
		p.Add(plotter.NewGrid())
		p.NominalX(labels...)
		var lines []any
		var bars []interface {
			plotter.XYer
			plotter.YErrorer
		}
		for _, c := range curves {
			if c.chains == (side == 1) {
				at := along(r, c, "wrapped")
				lines, bars = append(lines, c.name, at), append(bars, at)
			}
		}
		at := along(r, curves[side], "floor")
		lines, bars = append(lines, "the floor", at), append(bars, at)
		if err := errors.Join(plotutil.AddLinePoints(p, lines...), plotutil.AddYErrorBars(p, bars...)); err != nil {
			return nil, err
		}
	}
	most := 4 * max(1, plots[0][0].Y.Max, plots[0][1].Y.Max) // with the legend above; 1 where -only leaves no curve
	for _, p := range plots[0] {
		p.Y.Min, p.Y.Max = 1, most
	}
	svg := vgsvg.New(26*vg.Centimeter, 11*vg.Centimeter)
	for i, canvas := range plot.Align(plots, draw.Tiles{Rows: 1, Cols: 2}, draw.New(svg))[0] {
		plots[0][i].Draw(canvas)
	}
	var b bytes.Buffer
	_, err := svg.WriteTo(&b)
	return b.Bytes(), err
}

// points are medians with their confidence intervals.
type points struct {
	plotter.XYs
	plotter.YErrors
}

func along(r report, c curve, program string) (at points) {
	for i, count := range counts {
		for _, m := range r.Results {
			if m.Row.Name == c.row(count/r.Scale).Name {
				s := summary(over(m, program, measure.Wall))
				// A logarithmic axis has no place for 0 or less.
				at.XYs = append(at.XYs, plotter.XY{X: float64(i), Y: max(s.Center, 1)})
				at.YErrors = append(at.YErrors, struct{ Low, High float64 }{max(s.Center, 1) - max(s.Lo, 1),
					max(s.Hi, 1) - max(s.Center, 1)})
			}
		}
	}
	return at
}
