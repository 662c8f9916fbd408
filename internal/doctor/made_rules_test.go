// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"
)

// makeRules has a release make the rules of iptables.rules, those of one command at once, and returns which there are
// then. A rule that may be refused is made alone.
func makeRules(t *testing.T, r release, rows []string) (made, extensions []string) {
	t.Helper()
	rules := map[string]map[string]string{
		"iptables":  {"filter": ":USER - [0:0]\n"},
		"ip6tables": {},
	}
	var alone [][]string
	for _, row := range rows {
		words := strings.Fields(row)
		extension, command, table := words[0], words[1], words[3]
		extensions = append(extensions, extension)
		if refused[extension] != "" {
			alone = append(alone, words[1:])
			continue
		}
		_, rule, _ := strings.Cut(row, " -t "+table+" ")
		rules[command][table] += rule + "\n"
		made = append(made, command+" "+table+" "+targetOf(words))
	}
	for command, tables := range rules {
		input := ""
		for table, rules := range tables {
			input += "*" + table + "\n" + rules + "COMMIT\n"
		}
		printed, err := r.feed(input, command+"-restore")
		if err != nil {
			t.Errorf("%s refuses what %s-restore reads: %v: %s\n%s", r.name, command, err, printed, input)
		}
	}
	for _, words := range alone {
		_, err := r.run(words...)
		if err == nil {
			made = append(made, words[0]+" "+words[2]+" "+targetOf(words))
		}
	}
	return made, extensions
}

// targetOf is what follows -j or -g in a command; in nf_tables, NOTRACK is CT.
func targetOf(words []string) string {
	i := slices.IndexFunc(words, func(word string) bool { return word == "-j" || word == "-g" })
	switch {
	case i < 0:
		return ""
	case words[i+1] == "NOTRACK":
		return "CT"
	}
	return words[i+1]
}
