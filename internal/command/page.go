// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// page is where text for people is printed: a terminal, or something that is 80 columns wide. It remembers an error of
// writing, so nobody else need.
type page struct {
	io.Writer
	width int
	color bool
}

// page has colours on a terminal only, and not where NO_COLOR is set (no-color.org).
func (s *session) page() page {
	p := page{s.stdout, 80, false}
	file, ok := s.stdout.Writer.(*os.File)
	if !ok {
		return p
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return p
	}
	if size.Col > 0 {
		p.width = max(int(size.Col), 20)
	}
	p.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return p
}

// The colours, from ECMA-48.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	normal = "\x1b[0m"
)

// paragraph prints a label and a text beside it, broken between words where the page ends. A longer word, such as a path,
// is left to the terminal.
func (p page) paragraph(color, label, text string) {
	indent := utf8.RuneCountInString(label)
	column, written := indent, false
	if p.color && color != "" {
		word := strings.TrimRight(label, " ")
		label = color + word + normal + label[len(word):]
	}
	fmt.Fprint(p, label)
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case written && column+1+n > p.width:
			fmt.Fprint(p, "\n", strings.Repeat(" ", indent))
			column = indent
		case written:
			fmt.Fprint(p, " ")
			column++
		}
		fmt.Fprint(p, word)
		column, written = column+n, true
	}
	fmt.Fprintln(p)
}

// table prints rows in columns, the first of which is a heading.
func (p page) table(rows ...[]string) {
	padding := 2
	if p.width < 60 {
		padding = 1
	}
	t := tabwriter.NewWriter(p, 0, 0, padding, ' ', 0)
	fmt.Fprintln(t)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
}

// json prints a value for machines.
func (p page) json(value any) {
	e := json.NewEncoder(p)
	e.SetIndent("", "  ")
	_ = e.Encode(value)
}
