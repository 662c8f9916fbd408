// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package iptables has the names of the six commands and of iptables' tables, of the files that implement the commands,
// and of the directories in which distributions install them. It does no I/O. A backend is "nft" or "legacy".
package iptables

import (
	"slices"
	"strings"
)

// Commands returns the six commands that the wrapper stands in for.
func Commands() []string {
	return []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}
}

// Tables returns the tables that iptables has for each family.
func Tables() []string { return []string{"filter", "nat", "mangle", "raw", "security"} }

// IsTable reports whether iptables has a table of this name.
func IsTable(name string) bool { return slices.Contains(Tables(), name) }

// Dirs returns the directories in which distributions install iptables, in the order of the search.
func Dirs() []string { return []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"} }

// MultiCall returns the file name of a backend's multi-call program, such as "xtables-nft-multi". It implements all six
// commands, and selects the command by argv[0].
func MultiCall(backend string) string { return "xtables-" + backend + "-multi" }

// Single returns the file name of the program that implements one command in one backend, such as "iptables-nft-save".
func Single(backend, command string) string {
	return strings.Replace(command, "tables", "tables-"+backend, 1)
}

// BackendOf returns the backend of the program with a file name, "" if no program of iptables has that name.
func BackendOf(file string) string {
	for _, backend := range [...]string{"nft", "legacy"} {
		if file == MultiCall(backend) {
			return backend
		}
		for _, command := range Commands() {
			if file == Single(backend, command) {
				return backend
			}
		}
	}
	return ""
}
