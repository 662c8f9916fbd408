// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package iptables knows the programs of iptables: the six commands, the files that implement them, the directories in
// which distributions install them, and how they name their version. It asks nobody.
package iptables

import (
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Commands returns the six commands that the wrapper stands in for.
func Commands() []string {
	return []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}
}

// Dirs returns the directories in which distributions install iptables, in the order in which they are searched.
func Dirs() []string { return []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"} }

// MultiCall returns the file name of a backend's multi-call program, such as "xtables-nft-multi". It implements all six
// commands, and goes by argv[0].
func MultiCall[B ~string](mode B) string { return "xtables-" + string(mode) + "-multi" }

// Single returns the file name of the program that implements one command in one backend, such as "iptables-nft-save".
func Single[B ~string](mode B, command string) string {
	return strings.Replace(command, "tables", "tables-"+string(mode), 1)
}

// ModeOf returns the backend of the program that has a file name, "" if no program of iptables has it.
func ModeOf(file string) evidence.Mode {
	for _, mode := range evidence.Modes() {
		if file == MultiCall(mode) {
			return mode
		}
		for _, command := range Commands() {
			if file == Single(mode, command) {
				return mode
			}
		}
	}
	return ""
}

// BackendOf is ModeOf, as a plain string.
func BackendOf(file string) string { return string(ModeOf(file)) }
