// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"regexp"
	"strconv"
	"strings"
)

// longest is the length of the longest line of a fact, and room what is left of it for a list.
const (
	longest = 200
	room    = 180
)

// fit joins what fits in so many bytes, at most eight, and then says how many more there are: "a, b and 2993 more".
func fit(room int, separator string, all []string) string {
	const most = 8
	text := ""
	for i, one := range all {
		with := one
		if i > 0 {
			with = text + separator + one
		}
		if i == most || len(with) > room {
			more := strconv.Itoa(len(all) - i)
			if i == 0 {
				return more
			}
			return text + " and " + more + " more"
		}
		text = with
	}
	return text
}

// list is fit for a sentence.
func list(all []string) string { return fit(room, ", ", all) }

// cut cuts a line that is too long.
func cut(line string, room int) string {
	if len(line) <= room {
		return line
	}
	const sign = "..."
	return strings.ToValidUTF8(line[:room-len(sign)], "") + sign
}

// number is a number of things: "1 rule", "at least 12 rules".
func number(n int, more bool, thing string) string {
	text := strconv.Itoa(n) + " " + thing
	if n != 1 {
		text += "s"
	}
	if more {
		text = "at least " + text
	}
	return text
}

// isPlain matches a text that is one word for a shell, and for people.
var isPlain = regexp.MustCompile(`^[\w./:+@%,-]+$`)

// quoted is a path as one word for a shell.
func quoted(path string) string {
	if isPlain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// plain is a name that somebody in the network has chosen, as one word for people.
func plain(name string) string {
	if isPlain.MatchString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// each returns the results of a function.
func each[T, R any](all []T, of func(T) R) (results []R) {
	for _, one := range all {
		results = append(results, of(one))
	}
	return results
}

// lines are those of a text that are not empty, without the spaces around them and what a terminal would not show.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if line != "" {
			all = append(all, line)
		}
	}
	return all
}

func printable(r rune) rune {
	if r == '\n' || strconv.IsPrint(r) {
		return r
	}
	return ' '
}

// oneLine makes one of a text.
func oneLine(text string) string { return strings.Join(lines(text), "; ") }

// sentence makes one of a text.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
