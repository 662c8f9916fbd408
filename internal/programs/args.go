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
		return restores(argv[1:])
	default:
		return slices.ContainsFunc(argv[1:], isAdding)
	}
}

// Changes reports whether a command line can change a table: what Adds says, and deleting and flushing, which can destroy
// the evidence.
func Changes(argv []string) bool {
	return Adds(argv) || len(argv) > 0 && !strings.Contains(Base(argv[0]), "-") && slices.ContainsFunc(argv[1:], func(word string) bool {
		option, _, _ := strings.Cut(word, "=")
		return isOption(option, "DFX", "46bfnvwx", []string{"delete", "flush", "delete-chain"})
	})
}

// NeedsNAT reports whether a call that adds something may add it to table nat.
func NeedsNAT(argv []string) bool {
	return strings.HasSuffix(Base(argv[0]), "-restore") ||
		slices.ContainsFunc(argv[1:], func(word string) bool { return strings.HasSuffix(word, "nat") })
}

// isAdding recognises "-A", "-AINPUT", "-vA", "--append", "--append=INPUT" and its abbreviations.
func isAdding(word string) bool {
	option, _, _ := strings.Cut(word, "=")
	return isOption(option, "AINRPE", "46bfnvwx", adding[:])
}

// restores reports whether iptables-restore gets as far as adding. Unlike iptables it needs a word's place: "-M -t" is a path
// and "-- -t" is a file.
func restores(words []string) bool {
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		switch {
		case endsEarly(words[i]):
			return false
		case takesNext(words[i]):
			i++
		}
	}
	return true
}

// takesNext recognises the options of iptables-restore(8) whose value is the next word. A value may also follow in the word.
func takesNext(word string) bool {
	if strings.HasPrefix(word, "--") {
		return isOption(word, "", "", []string{"modprobe", "table"})
	}
	return isOption(word, "MT", restoreFlags, nil) && strings.IndexAny(word, "MT") == len(word)-1
}

// restoreFlags are the options of iptables-restore(8) that take no value of their own.
const restoreFlags = "46bcnvwW"

// endsEarly recognises the options of iptables-restore(8) after which nothing is added. Abbreviations that also stand for
// --table or --verbose are not among them.
func endsEarly(word string) bool {
	return !slices.Contains([]string{"--t", "--v", "--ve", "--ver"}, word) &&
		isOption(word, "thV", restoreFlags, []string{"test", "help", "version"})
}

// isOption recognises a long option and its abbreviations, and a letter, perhaps behind those that take no value.
func isOption(word, letters, valueless string, long []string) bool {
	if abbreviation, ok := strings.CutPrefix(word, "--"); ok {
		return abbreviation != "" && slices.ContainsFunc(long, func(name string) bool { return strings.HasPrefix(name, abbreviation) })
	}
	short, ok := strings.CutPrefix(word, "-")
	short = strings.TrimLeft(short, valueless)
	return ok && short != "" && strings.ContainsRune(letters, rune(short[0]))
}
