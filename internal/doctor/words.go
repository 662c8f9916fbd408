// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// list names at most eight: "a, b and 2,993 more".
func list(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + thousands(len(names)-most) + " more"
}

// thousands is a number for people: 2,993.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// count is a number of rules.
func count(rules int) string {
	if rules == 1 {
		return "1 rule"
	}
	return thousands(rules) + " rules"
}

// isPlain matches a text that is one word for a shell, and for people.
var isPlain = regexp.MustCompile(`^[\w./:+@-]+$`)

// quoted is a path as one word for a shell.
func quoted(path string) string {
	if isPlain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// plain is a name that somebody in the network has chosen, as a sentence has it.
func plain(name string) string {
	if isPlain.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

func plainAll(names []string) (all []string) {
	for _, name := range names {
		all = append(all, plain(name))
	}
	return all
}

// firstLine is that of a text, without the spaces around it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// pathsOf are the paths of names.
func pathsOf(names []name) (paths []string) {
	for _, n := range names {
		paths = append(paths, n.Path)
	}
	return paths
}

// these begins a sentence about some of the six commands, of which one does something, or several do.
func these(paths []string, does, do string) string {
	switch len(paths) {
	case 1:
		return paths[0] + " " + does
	case len(saves) * 3:
		return "The six commands in " + filepath.Dir(paths[0]) + " " + do
	}
	return "Some of the six commands " + do + ": " + list(paths)
}
