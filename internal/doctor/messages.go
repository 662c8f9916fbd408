// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// message is something that the programs which doctor starts can print, and what it means. A part of the table of
// messages in docs/troubleshooting.md is made from these; the rest of it stands only there.
type message struct {
	texts   []string // the output contains one of them
	code    string   // the finding, "" if nothing is wrong
	says    string   // what it means, a sentence
	do      string   // what to do, a sentence
	library bool     // a library or a part of the kernel is missing
}

const (
	addCaps = "Add NET_ADMIN and NET_RAW to securityContext.capabilities of the container (docker run " +
		"--cap-add=NET_ADMIN --cap-add=NET_RAW)."
	wrapIt = "Put the wrapper into the image, or use iptables-nft: most hosts use nft, and then need no module of " +
		"legacy. Only if the node itself uses legacy, load ip_tables and the module of the table (iptable_filter) " +
		"there."
	loadLegacy = "If the node uses legacy, load ip_tables, iptable_filter, iptable_nat and their IPv6 counterparts " +
		"there. If it uses nft, have iptables here use nft: these modules would only make a second set of rules " +
		"possible."
	useOther = "If the node uses legacy, have iptables here use it, too: put the wrapper into the image. Otherwise " +
		"look at the seccomp profile, and load nf_tables on the node."
	ownTable  = "See which program uses nft in a table of iptables: `iptables-wrapper doctor` names the chain."
	reinstall = "Install iptables again in the image, with all files of its xtables directory."
)

// messages are in the order in which they are looked for: the first one that the output contains counts.
var messages = []message{
	{
		texts: []string{"Could not fetch rule set generation id: Permission denied"},
		code:  notPermitted,
		says:  "CAP_NET_ADMIN is missing, or does not count here: without it, iptables-nft cannot even list rules.",
		do:    addCaps,
	},
	{
		texts: []string{"Permission denied (you must be root)"},
		code:  notPermitted,
		says:  "CAP_NET_ADMIN or CAP_NET_RAW is missing, or does not count here: iptables-legacy needs both.",
		do:    addCaps,
	},
	{
		texts: []string{"Could not fetch rule set generation id: Invalid argument"},
		code:  kernel,
		says: "iptables-nft cannot be used here: the kernel does not answer for nf_tables. Which backend the host " +
			"uses does not follow from that.",
		do: useOther,
	},
	{
		texts: []string{"Failed to initialize nft: Protocol not supported"},
		code:  kernel,
		says:  "The kernel has no nf_tables, or a seccomp profile forbids netlink sockets.",
		do:    useOther,
	},
	{
		texts: []string{
			"can't initialize iptables table",
			"can't initialize ip6tables table",
			"Table does not exist (do you need to insmod?)",
			"unable to initialize table",
			"iptables who? (do you need to insmod?)",
		},
		code: kernel,
		says: "iptables-legacy was called, and the kernel has no x_tables, or not this table. A container cannot " +
			"load a module.",
		do: wrapIt,
	},
	{
		texts: []string{"use 'nft' tool"},
		code:  nftTable,
		says: "One of three: nft has made a chain or a rule in a table of iptables; a newer iptables has made a rule " +
			"that this one cannot read; or, before iptables 1.8.10, the chain that was named does not exist, as with " +
			"the wrong backend.",
		do: ownTable,
	},
	{
		texts: []string{"Parsing nftables rule failed"},
		code:  nftTable,
		says: "The table has a rule that this iptables cannot read: nft has made it, or a newer iptables. To check " +
			"for a rule or to remove one, iptables reads all rules of its chain.",
		do: ownTable,
	},
	{
		texts: []string{"not supported, missing kernel module?"},
		code:  kernel,
		says:  "The kernel lacks the match or target that the message names, and rules with it fail.",
		do:    loadModules,
	},
	{
		texts:   []string{"Couldn't load match"},
		code:    noProgram,
		library: true,
		says:    "The image lacks the library of this match. Where the library is there, the kernel lacks the match.",
		do:      reinstall,
	},
	{
		texts: []string{"error while loading shared libraries"},
		code:  noProgram,
		says:  "The image lacks a library of iptables' program, as after copying the program alone.",
		do:    "Install iptables in the image with its package, or copy its libraries too.",
	},
	{
		texts: []string{"no such program"},
		code:  noProgram,
		says:  "The image lacks the program for the host's backend. The status is 127.",
		do:    installBoth,
	},
	{
		texts: []string{"permission denied"},
		code:  noProgram,
		says:  "The program for the host's backend is there and cannot be executed. The status is 126.",
		do:    installBoth,
	},
}

// Said is a message that a command printed here.
type Said struct {
	Command string `json:"command"`
	Line    string `json:"line"` // of the output
	Code    string `json:"code"`
	Failed  bool   `json:"failed"` // the command did not end with status 0

	message message
}

// explain finds the messages in what commands printed, the first one of each.
func explain(printed []start.Output) []Said {
	all := []Said{}
	for _, out := range printed {
		m, line := find(out.Text())
		if line != "" {
			all = append(all, Said{Command: out.Command, Line: line, Code: m.code, Failed: out.Err != nil, message: m})
		}
	}
	return all
}

// find returns the first message that an output contains, and the line that has it.
func find(printed string) (m message, line string) {
	for _, m := range messages {
		for _, text := range m.texts {
			for line := range strings.Lines(printed) {
				if strings.Contains(line, text) {
					return m, strings.TrimSpace(line)
				}
			}
		}
	}
	return message{}, ""
}
