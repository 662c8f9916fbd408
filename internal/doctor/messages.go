// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// message is something that the programs which doctor starts can print, and what it means. The first list of messages
// in docs/troubleshooting.md is made from these; the other one stands only there.
type message struct {
	texts   []string // the output contains one of them
	code    string   // the finding
	says    string   // what it means, a sentence
	do      string   // what to do, a sentence
	library bool     // a library or a part of the kernel is missing
}

const (
	addCaps = "Add NET_ADMIN and NET_RAW to securityContext.capabilities of the container (docker run " +
		"--cap-add=NET_ADMIN --cap-add=NET_RAW)."
	useNFT = "Let the wrapper choose: put it into the image, without IPTABLES_WRAPPER_BACKEND. Or use iptables-nft. " +
		"Most nodes use nft (iptables --version there), and need no module of legacy. Only if the node itself uses " +
		"legacy, load ip_tables, iptable_filter and iptable_nat there."
	useOther = "If the node uses legacy (iptables --version there), let the wrapper choose: put it into the image, " +
		"without IPTABLES_WRAPPER_BACKEND. Otherwise load nf_tables on the node, and look at the seccomp profile."
	ownTable  = "`iptables-wrapper doctor` names the chain and, if the name reveals it, the program."
	reinstall = "Install iptables again in the image, with all files of its xtables directory."
)

// messages are in the order in which they are looked for: the first one that the output contains counts.
var messages = []message{
	{
		texts: []string{
			"Could not fetch rule set generation id: Permission denied",
			"Permission denied (you must be root)",
		},
		code: notPermitted,
		says: "CAP_NET_ADMIN, or for legacy CAP_NET_RAW, is missing, or does not count here.",
		do:   addCaps,
	},
	{
		texts: []string{
			"Could not fetch rule set generation id: Invalid argument",
			"Failed to initialize nft: Protocol not supported",
		},
		code: kernel,
		says: "nf_tables does not answer here: the kernel lacks it, or a seccomp profile forbids it. That does not " +
			"prove that the node uses legacy.",
		do: useOther,
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
		says: "iptables-legacy was called, and the kernel lacks its tables.",
		do:   useNFT,
	},
	{
		texts: []string{"use 'nft' tool"},
		code:  nftTable,
		says: "A rule or chain in this table was made with nft, or by a newer iptables. Before iptables 1.8.10 " +
			"(Debian 12), also: the chain does not exist, perhaps because the backend is wrong.",
		do: ownTable,
	},
	{
		texts: []string{"Parsing nftables rule failed"},
		code:  nftTable,
		says:  "This iptables cannot read a rule in the chain. It was made with nft, or by a newer iptables.",
		do:    ownTable,
	},
	{
		texts: []string{"not supported, missing kernel module?"},
		code:  kernel,
		says:  "The kernel lacks the match or target that the message names.",
		do:    loadModules,
	},
	{
		texts:   []string{"Couldn't load match"},
		code:    noProgram,
		library: true,
		says:    "The image lacks the library of this match. If the library is there, the kernel lacks the match.",
		do:      reinstall,
	},
	{
		texts: []string{"error while loading shared libraries"},
		code:  noProgram,
		says:  "The image lacks a library of iptables' program.",
		do:    "Install iptables in the image with its package, or copy its libraries too.",
	},
	{
		texts: []string{"no such program", "permission denied"},
		code:  noProgram,
		says: "The image's program for the host's backend is missing (status 127), or cannot be executed (status " +
			"126).",
		do: installBoth,
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
func explain(printed []run.Output) []Said {
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
