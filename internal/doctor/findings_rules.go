// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// foreignRules are about what others have put into the tables.
func (r *Report) foreignRules() []rule {
	removals := r.removals()
	return append(r.nftTables(), r.chainsInBoth(removals), r.rulesInBoth(removals))
}

// nftTables are about tables with which iptables-nft cannot work.
func (r *Report) nftTables() []rule {
	nft := r.wanted() == detect.NFT
	dormant := r.dormantTable()
	return []rule{
		{
			code:     "unlisted-tables",
			severity: Problem,
			detail:   when(nft && r.foreignChains() == "", strings.Join(r.Unreadable, "; ")),
			text:     "iptables-nft cannot list all of its tables: {}",
			fixes:    only(Node, moveChain),
		},
		{
			code:     "faulty-table",
			severity: Problem,
			detail:   when(nft, r.faults()),
			text:     "somebody uses nft directly in a table of iptables-nft: {}",
			fixes: fixes{
				{
					dormant != "", Node,
					"look at its rules first: they all take effect when \"nft add table " + dormant + "\" wakes it. " +
						"To see them:\nnft list table " + dormant,
				},
				{always, Node, moveChain},
			},
		},
		{
			code:     "listing-fails",
			severity: Problem,
			detail:   when(nft && !r.blind(), strings.Join(r.unlisted, "; ")),
			text:     "iptables-nft cannot list its tables: {}",
			fixes: fixes{
				{r.hidingLibraries != "", Pod, "remove " + r.hidingLibraries},
				{
					len(r.unloadable) > 0 || r.rulesNeedLibraries(), Image,
					"install iptables again, with all files of its directory xtables",
				},
				{always, Node, "look at the container's memory limit and at the kernel's log (dmesg)"},
			},
		},
	}
}

// chainsInBoth is about chains that are left over in the backend that the host does not use.
func (r *Report) chainsInBoth(removals []removal) rule {
	blocks := tablesWith(removals, func(x removal) bool { return x.blocks })
	unsafe := tablesWith(removals, func(x removal) bool { return x.unsafe })
	long := tablesWith(removals, removal.tooLong)
	show := showTables(removals)
	opened, remove := removeAll(removals)
	return rule{
		code:     "chains-in-both",
		severity: Warning,
		detail:   when(!r.Here.Differs, leftovers(removals)),
		text:     "as happens after switching backends, these chains in {other} are left over: {}",
		fixes: fixes{
			{
				blocks != "", Node,
				"first have {host} drop what is to stay blocked: in " + blocks + ", rules of these chains or " +
					"policies drop packets that {host} may let pass. Then remove the chains by hand, with care. " +
					"To see them:" + show,
			},
			{
				unsafe != "", Node,
				"reboot, which leaves only what the node's programs make again; or remove them by hand, with " +
					"care: in " + unsafe + ", other rules may need what these chains do, or act on what they " +
					"accept. To see them:" + show,
			},
			{
				long != "", Node,
				"reboot, which leaves only what the node's programs make again: in " + long + ", there are too " +
					"many for one command. To see them:" + show,
			},
			{r.removable(), Container, "remove them" + opened + ":" + remove},
			{always, Node, "remove them" + opened + ", or reboot:" + remove},
		},
	}
}

// rulesInBoth is about all else in the backend that the host does not use: rules, and policies of built-in chains.
func (r *Report) rulesInBoth(removals []removal) rule {
	rules := r.otherRules(removals)
	policies, openUp := r.otherPolicies(removals)
	both := rules
	if policies != "" {
		both = strings.TrimPrefix(rules+", "+policies, ", ")
	}
	listed := r.Here.Backend == otherMode(r.Host.Mode) // where the host's backend is a guess, it may be this one
	saidAlready := policies == "" && r.programsInBoth() != ""
	// Where the host's backend is a guess, the policies may be those of the firewall in use.
	onlyPolicies := rules == "" && openUp != "" && r.Host.Conclusive
	return rule{
		code:     "rules-in-both",
		severity: Warning,
		detail:   when(!listed && !saidAlready, both),
		text:     "the other backend has rules too: {}. They are active, but iptables here does not list them",
		fixes: fixes{
			{
				onlyPolicies && r.removable(), Container,
				"let everything pass there, unless somebody wants these policies:" + openUp,
			},
			{onlyPolicies, Node, "let everything pass there, unless somebody wants these policies:" + openUp},
			{
				policies != "", Node,
				"if the program that made them still runs, have it use {host}; if not, remove them with these " +
					"policies, which drop what the rules accept now. To see them:" + r.showOthers(),
			},
			{
				always, Node,
				"if the program that made them still runs, have it use {host}; if not, remove them. " +
					"To see them:" + r.showOthers(),
			},
		},
	}
}
