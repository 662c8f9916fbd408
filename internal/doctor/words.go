// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
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

// pathsOf are the paths of the names of which something is true.
func pathsOf(names []link.Name, is func(link.Name) bool) (paths []string) {
	for _, n := range names {
		if is(n) {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// these begins a sentence about some of the six commands, of which one does something, or several do.
func (o *observation) these(paths []string, does, do string) string {
	switch len(paths) {
	case 1:
		return paths[0] + " " + does + "."
	case len(o.Names):
		return "The six commands in " + filepath.Dir(paths[0]) + " " + do + "."
	}
	return "Some of the six commands " + do + ": " + list(paths) + "."
}

// firstLine is that of an error.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
