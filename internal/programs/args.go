// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"slices"
	"strings"
)

// adding are the long forms of -A -I -N -R -P -E, see iptables(8).
var adding = [...]string{"append", "insert", "new-chain", "replace", "policy", "rename-chain"}

// Adds reports whether a command line can add something to a table: a rule, a chain, a policy or a name. argv[0] is one of
// the six commands.
//
// It does not parse the command line: a word that looks like such an option counts, even where it is the value of another
// one. Taking a reading call for an adding one costs little; the reverse would let the backend change under a client.
func Adds(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	switch name := Base(argv[0]); {
	case strings.HasSuffix(name, "-save"):
		return false
	case strings.HasSuffix(name, "-restore"):
		return !slices.ContainsFunc(argv[1:], endsEarly)
	default:
		return slices.ContainsFunc(argv[1:], isAdding)
	}
}

// NeedsNAT reports whether a call that adds something may add it to table nat.
func NeedsNAT(argv []string) bool {
	return strings.HasSuffix(Base(argv[0]), "-restore") ||
		slices.ContainsFunc(argv[1:], func(word string) bool { return strings.HasSuffix(word, "nat") })
}

// isAdding recognises "-A", "-AINPUT", "-vA", "--append" and its abbreviations.
func isAdding(word string) bool {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		return long != "" && slices.ContainsFunc(adding[:], func(name string) bool { return strings.HasPrefix(name, long) })
	}
	short, ok := strings.CutPrefix(word, "-")
	short = strings.TrimLeft(short, "46bfnvwx") // options that take no value may stand before the command in one word
	return ok && short != "" && strings.ContainsRune("AINRPE", rune(short[0]))
}

// endsEarly recognises the options of iptables-restore(8) after which nothing is added: --test, --help, --version, their
// abbreviations, and -t, -h, -V behind other letters that take no value.
func endsEarly(word string) bool {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		return long != "" && long != "t" && slices.ContainsFunc([]string{"test", "help", "version"}, func(name string) bool {
			return strings.HasPrefix(name, long) && long != "ve" && long != "ver" && long != "v"
		})
	}
	short, ok := strings.CutPrefix(word, "-")
	short = strings.TrimLeft(short, "46bcnvw")
	return ok && short != "" && strings.ContainsRune("thV", rune(short[0]))
}
