// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import "strings"

// message is something that the programs which doctor starts print on standard error. What it means is in the list of
// messages in docs/troubleshooting.md, with many others.
type message struct {
	text string
	code string // the finding
}

// messages are in the order in which they are looked for: the first one that the output contains counts.
var messages = []message{
	{"Could not fetch rule set generation id: Permission denied", notPermitted},
	{"Failed to initialize nft: Permission denied", notPermitted},
	{"Permission denied (you must be root)", notPermitted},
	{"Could not fetch rule set generation id: Invalid argument", kernel},
	{"Failed to initialize nft: Protocol not supported", kernel},
	{"Table does not exist (do you need to insmod?)", kernel},
	{"iptables who? (do you need to insmod?)", kernel},
	{"extension not found", noProgram},
	{"Can't find library for ", noProgram},
	{"Couldn't load ", noProgram},
	{"error while loading shared libraries", noProgram},
	{"Error loading shared library", noProgram}, // musl's, as the next one
	{"Error relocating", noProgram},
	{"Parsing nftables rule failed", nftTable},
}

// incompatible is what iptables-nft prints of a table that it cannot list, and foreignChains what it prints of one that
// has other base chains than its own.
const (
	incompatible  = " is incompatible, use 'nft' tool"
	foreignChains = " contains incompatible base-chains, use 'nft' tool"
)

// message returns the first message in what a command printed on standard error, and the line that has it.
func (s save) message() (code, line string) {
	for _, m := range messages {
		for line := range strings.Lines(s.Stderr) {
			if strings.Contains(line, m.text) {
				return m.code, strings.TrimSpace(line)
			}
		}
	}
	return "", ""
}

// remark returns the line with a text that iptables-nft prints of the whole table: on standard error, or before the
// table. What comes later is rules, and has other people's words.
func (s save) remark(text string) string {
	for line := range strings.Lines(s.Stderr + "\n" + s.Stdout) {
		if strings.HasPrefix(line, "*") {
			break
		}
		if strings.HasPrefix(line, "# Table `") && strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// quote is a sentence that says what a command printed.
func quote(command, line string) string {
	if line == "" {
		return "\"" + command + "\" printed nothing."
	}
	return "\"" + command + "\" printed \"" + strings.TrimSuffix(line, ".") + "\"."
}
