// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"regexp"
	"strconv"
	"strings"
)

// list names at most eight: "a, b and 2993 more".
func list(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
}

// count is a number of rules.
func count(rules int) string {
	if rules == 1 {
		return "1 rule"
	}
	return strconv.Itoa(rules) + " rules"
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
