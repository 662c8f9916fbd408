// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// message is something that iptables, the wrapper or another project's wrapper prints, and what it means. The table of
// messages in docs/troubleshooting.md is made from these.
type message struct {
	texts  []string // the output contains one of them
	code   string   // the finding, "" if nothing is wrong
	says   string   // what it means, a sentence
	do     string   // what to do, a sentence
	source string   // for a message of a program that is not tested here: where that program prints it
}

const (
	runDoctor = "Run `iptables-wrapper doctor` in the container."
	addCaps   = "Add NET_ADMIN and NET_RAW to securityContext.capabilities of the container " +
		"(docker run --cap-add=NET_ADMIN --cap-add=NET_RAW)."
	loadLegacy = "On the node, load ip_tables, iptable_filter, iptable_nat and their IPv6 counterparts, if " +
		"the host uses legacy at all."
	ownTable = "Have the program that uses nft directly put its chains into a table with a name of its own. " +
		"`nft list ruleset` shows them."
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
		says:  "iptables-nft was called, and the kernel has no nf_tables. So the host uses legacy.",
		do:    runDoctor,
	},
	{
		texts: []string{"Failed to initialize nft: Protocol not supported"},
		code:  kernel,
		says:  "The kernel has no nf_tables, or a seccomp profile forbids netlink sockets.",
		do:    runDoctor,
	},
	{
		texts: []string{
			"can't initialize iptables table",
			"Table does not exist (do you need to insmod?)",
			"unable to initialize table",
			"iptables who? (do you need to insmod?)",
			"Module ip_tables not found",
		},
		code: kernel,
		says: "iptables-legacy was called, and the kernel has no x_tables, or not this table. A container cannot load a " +
			"module.",
		do: loadLegacy,
	},
	{
		texts: []string{"use 'nft' tool"},
		code:  nftTable,
		says:  "Somebody uses nft directly in a table of iptables.",
		do:    ownTable,
	},
	{
		texts: []string{"Parsing nftables rule failed"},
		code:  nftTable,
		says: "The chain has a rule that this iptables cannot read: nft made it, or a newer iptables. To check for a " +
			"rule or to remove one, iptables reads all rules of its chain.",
		do: ownTable,
	},
	{
		texts: []string{"TABLE_ADD failed"},
		code:  nftTable,
		says: "With \"Operation not permitted\", a running program owns the table. With \"Operation not supported\", the " +
			"kernel's nf_tables lacks the family.",
		do: runDoctor,
	},
	{
		texts: []string{"CHAIN_ADD failed", "CHAIN_UPDATE failed", "CHAIN_USER_ADD failed"},
		code:  kernel,
		says: "A part of nf_tables is missing, such as nft_chain_nat. Or somebody made the table with nft, or owns it: " +
			"then the words in parentheses are \"Operation not permitted\".",
		do: runDoctor,
	},
	{
		texts: []string{"not supported, missing kernel module?"},
		code:  kernel,
		says: "The kernel lacks the match or target that the message names. If nothing fails, it is only a warning: " +
			"iptables 1.8.9 needs nothing from the kernel for tcp, udp and mark.",
		do: "On the node, install all modules of the running kernel. If the kernel was updated, reboot.",
	},
	{
		texts: []string{"RULE_APPEND failed"},
		code:  kernel,
		says: "The kernel lacks the rule's match or target, or nft_compat; or it refuses what the rule says. The words " +
			"in parentheses say why.",
		do: "On the node, install all modules of the running kernel. If the kernel was updated, reboot.",
	},
	{
		texts: []string{"Couldn't load match", "Couldn't load target"},
		code:  noProgram,
		says: "The image lacks the library of this match or target. Or a chain is missing: with iptables-legacy, a jump " +
			"to a chain of the other backend fails like this.",
		do: reinstall,
	},
	{
		texts: []string{"error while loading shared libraries"},
		code:  noProgram,
		says:  "The image lacks a library of iptables' program, as after copying the program alone.",
		do:    "Install iptables in the image with its package, or copy its libraries too.",
	},
	{
		texts: []string{"No chain/target/match by that name", "Bad rule (does a matching rule exist in that chain?)"},
		code:  wrongBackend,
		says:  "The chain or the rule is in the other backend, or nowhere. Or the kernel lacks the match or target.",
		do:    runDoctor,
	},
	{
		texts: []string{"Chain already exists"},
		says: "The program made the chain earlier, or two programs use the same name. If the program goes on, it does no " +
			"harm.",
		do: "Look at the chain with `iptables -S`.",
	},
	{
		texts: []string{"# Warning: iptables-legacy tables present"},
		code:  bothBackends,
		says:  "The kernel has tables of legacy, perhaps without a rule.",
		do:    "Look at them with `iptables-legacy-save -c`.",
	},
	{
		texts: []string{"Another app is currently holding the xtables lock"},
		code:  lock,
		says:  "Another program of iptables-legacy is at work, or holds the lock for a long time.",
		do: "Have the client wait for the lock (option -w). If that does not help, find the process with `lslocks` on " +
			"the node.",
	},
	{
		texts: []string{"can't open lock file"},
		code:  lock,
		says:  "/run is read-only or missing, the lock is a directory, or the file belongs to another user.",
		do:    mountLock,
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
	{
		texts: []string{"is not one of auto, nft, legacy"},
		code:  wrongBackend,
		says:  "IPTABLES_WRAPPER_MODE has a value that is not a backend, so every call fails. The status is 2.",
		do:    "Set IPTABLES_WRAPPER_MODE to nft or legacy, or remove it.",
	},
	{
		texts: []string{"Unable to redirect iptables binaries"},
		code:  notWrapped,
		says: "This is v1, v2 or v3 of another project. It cannot replace the commands: they are read-only, or it is not " +
			"root.",
		do:     "Put this wrapper into the image: `iptables-wrapper install`.",
		source: "kubernetes-sigs/iptables-wrappers:main.go@bfef9e5087a198b50a4124bb9ce9d2c7c99025dd",
	},
}

// Said is a message that a command printed here.
type Said struct {
	Command string `json:"command"`
	Line    string `json:"line"` // of the output
	Code    string `json:"code,omitempty"`
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
