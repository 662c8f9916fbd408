// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"path/filepath"
	"slices"
	"strings"
)

// option is an option that matters here, see iptables(8) and iptables-restore(8).
type option struct {
	letter byte
	long   string
}

// If an abbreviation stands for two options, the first counts: of --table and --test, and of --verbose and --version,
// the one that does not keep iptables-restore from adding.
var (
	adding = []option{
		{'A', "append"}, {'I', "insert"}, {'N', "new-chain"}, {'R', "replace"}, {'P', "policy"}, {'E', "rename-chain"},
	}
	removing  = []option{{'D', "delete"}, {'F', "flush"}, {'X', "delete-chain"}}
	restoring = []option{
		{'M', "modprobe"}, {'T', "table"}, {'t', "test"}, {'h', "help"}, {'v', "verbose"}, {'V', "version"},
	}
)

// valueless are the options without a value, which may stand before another one in the same word.
const valueless = "46bcfnvwWx"

// parse returns the letter of the option that a word is, 0 if it is none of them, and the value in the word, if any. It
// recognises "-A", "-AINPUT", "-vA", "--append", "--append=INPUT" and abbreviations of them.
func parse(word string, options []option) (letter byte, value string) {
	long, isLong := strings.CutPrefix(word, "--")
	if isLong {
		return parseLong(long, options)
	}
	short, isShort := strings.CutPrefix(word, "-")
	short = strings.TrimLeft(short, valueless)
	if !isShort || short == "" {
		return 0, ""
	}
	for _, o := range options {
		if o.letter == short[0] {
			return o.letter, short[1:]
		}
	}
	return 0, ""
}

// parseLong is parse for a word that began with "--".
func parseLong(word string, options []option) (letter byte, value string) {
	name, value, _ := strings.Cut(word, "=")
	if name == "" {
		return 0, ""
	}
	for _, o := range options {
		if strings.HasPrefix(o.long, name) {
			return o.letter, value
		}
	}
	return 0, ""
}

// adds reports whether a command line can add something to a table: a rule, a chain, a policy or a name. argv[0] is
// one of the six commands.
//
// It does not parse the command line: a word that looks like such an option counts, even where it is the value of
// another one. To take a reading call for an adding one costs little. To take an adding call for a reading one would
// let the backend change under a client.
func adds(argv []string) bool { return has(argv, adding) }

// changes reports whether a command line can change a table: what adds says, and deleting and flushing, which can
// destroy the evidence.
func changes(argv []string) bool { return has(argv, adding) || has(argv, removing) }

// has reports whether a command line has one of the options, or is an iptables-restore, which can do all that they do.
func has(argv []string, options []option) bool {
	name := filepath.Base(argv[0])
	switch {
	case strings.HasSuffix(name, "-save"):
		return false
	case strings.HasSuffix(name, "-restore"):
		return restores(argv[1:])
	}
	return slices.ContainsFunc(argv[1:], func(word string) bool {
		letter, _ := parse(word, options)
		return letter != 0
	})
}

// restores reports whether iptables-restore gets as far as adding. Unlike iptables it needs a word's place: "-M -t"
// is a path and "-- -t" is a file.
func restores(words []string) bool {
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		letter, value := parse(words[i], restoring)
		switch letter {
		case 't', 'h', 'V':
			return false
		case 'M', 'T':
			if value == "" {
				i++ // it is the next word
			}
		}
	}
	return true
}

// needsNAT reports whether a call that adds something may add it to table nat.
func needsNAT(argv []string) bool {
	namesNAT := func(word string) bool { return strings.HasSuffix(word, "nat") } // -t nat, -tnat, --table=nat
	return strings.HasSuffix(filepath.Base(argv[0]), "-restore") || slices.ContainsFunc(argv[1:], namesNAT)
}
