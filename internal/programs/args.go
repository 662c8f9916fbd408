// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"slices"
	"strings"
)

// Letter and long form of the options that matter, see iptables(8) and iptables-restore(8). Where an abbreviation stands for
// two, the first counts: --table is before --test, and --verbose before --version, because --t and --v end nothing.
var (
	changing = []string{"A append", "I insert", "N new-chain", "R replace", "P policy", "E rename-chain",
		"D delete", "F flush", "X delete-chain"}
	restoring = []string{"M modprobe", "T table", "t test", "h help", "v verbose", "V version"}
)

// valueless are the letters that may stand before another one in the same word.
const valueless = "46bcfnvwWx"

// parse returns the letter of the option that a word is, 0 if it is none of these, and the value in the word, if any. It
// recognises "-A", "-AINPUT", "-vA", "--append", "--append=INPUT" and its abbreviations.
func parse(word string, options []string) (letter byte, value string) {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		long, value, _ = strings.Cut(long, "=")
		for _, o := range options {
			if long != "" && strings.HasPrefix(o[2:], long) {
				return o[0], value
			}
		}
	} else if short, ok := strings.CutPrefix(word, "-"); ok {
		if short = strings.TrimLeft(short, valueless); short != "" {
			return short[0], short[1:]
		}
	}
	return 0, ""
}

// Adds reports whether a command line can add something to a table: a rule, a chain, a policy or a name. argv[0] is one of
// the six commands.
//
// It does not parse the command line: a word that looks like such an option counts, even where it is the value of another
// one. Taking a reading call for an adding one costs little; the reverse would let the backend change under a client.
func Adds(argv []string) bool { return has(argv, "AINRPE") }

// Changes reports whether a command line can change a table: what Adds says, and deleting and flushing, which can destroy
// the evidence.
func Changes(argv []string) bool { return has(argv, "AINRPEDFX") }

func has(argv []string, letters string) bool {
	switch name := Base(argv[0]); {
	case strings.HasSuffix(name, "-save"):
		return false
	case strings.HasSuffix(name, "-restore"):
		return restores(argv[1:])
	}
	return slices.ContainsFunc(argv[1:], func(word string) bool {
		letter, _ := parse(word, changing)
		return strings.IndexByte(letters, letter) >= 0
	})
}

// restores reports whether iptables-restore gets as far as adding. Unlike iptables it needs a word's place: "-M -t" is a path
// and "-- -t" is a file.
func restores(words []string) bool {
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		switch letter, value := parse(words[i], restoring); {
		case letter == 't', letter == 'h', letter == 'V':
			return false
		case (letter == 'M' || letter == 'T') && value == "":
			i++
		}
	}
	return true
}

// NeedsNAT reports whether a call that adds something may add it to table nat.
func NeedsNAT(argv []string) bool {
	return strings.HasSuffix(Base(argv[0]), "-restore") ||
		slices.ContainsFunc(argv[1:], func(word string) bool { return strings.HasSuffix(word, "nat") })
}
