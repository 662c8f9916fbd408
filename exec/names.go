// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package exec finds the programs behind the six names of iptables, points the names at those of one backend, and
// becomes one of them.
//
// It knows nothing of how a backend is chosen: wherever a mode is asked for, it is "nft" or "legacy". A program that is
// not the wrapper needs Find alone.
//
// Before v1, names in this package may change, with a note in the commit; from v1 on, Go's rules of compatibility hold.
// The two modes and the six names are stable.
package exec

import (
	"slices"
	"strings"
)

// names are the six that the wrapper serves, in the order in which they are moved. The plain ones come last, because
// others may be links to them.
var names = [...]string{
	"iptables-save", "iptables-restore", "ip6tables-save", "ip6tables-restore", "ip6tables", "iptables",
}

// modes are the two backends.
var modes = [...]string{"nft", "legacy"}

// wrapperName is what the wrapper itself is called.
const wrapperName = "iptables-wrapper"

// Name returns the name under which a program was called, which is the last part of argv[0], and whether it is one of
// the six.
func Name(argv0 string) (string, bool) {
	name := base(argv0)
	return name, slices.Contains(names[:], name)
}

// dir and base split a path at its last slash. Unlike those of path/filepath they leave ".." alone, which does not
// mean the same before and after a symbolic link is followed.
func dir(path string) string {
	switch i := strings.LastIndexByte(path, '/'); i {
	case -1:
		return "."
	case 0:
		return "/"
	default:
		return path[:i]
	}
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// in returns the path of a file in a directory.
func in(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }
