// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package prose

import "regexp"

// phrase is something not to write, where it would be found, and what to write instead.
type phrase struct {
	pattern *regexp.Regexp
	example string
	instead string
}

func avoid(pattern, example, instead string) phrase {
	return phrase{regexp.MustCompile(`(?i)\b(` + pattern + `)\b`), example, instead}
}

var phrases = []phrase{
	// Relative clauses without an antecedent.
	avoid(`for who (has|is|wants|looks)`, "this page is for who has v3", `"for users of ..."`),
	avoid(`who is not root can`, "who is not root can say", `"if you are not root, run ..."`),
	avoid(`whoever`, "whoever can write there", `"anyone who"`),
	avoid(`what(ever)? (comes|came) of`, "what came of it", `"result" or "outcome"`),
	avoid(`(comes|came|come) of (it|them|that|this|each|all)`, "this came of it", `"result" or "outcome"`),
	avoid(`what is to be reached`, "what is to be reached", `"target"`),
	avoid(`what it listens to`, "what it listens to", `"inputs"`),
	avoid(`(goes|go) with it`, "the program that goes with it", `"the matching program"`),
	// Verbs of speech and sight for programs.
	avoid(`tells? of`, "nf_tables tells of each change", `"reports"`),
	avoid(`(is|are|was|were) told of`, "it is told of", `"is reported"`),
	avoid(`is not said`, "it is not said", `"is not reported"`),
	avoid(`(meets?|met|meeting) the wrapper`, "later calls do not meet the wrapper", `"bypass" or "run"`),
	avoid(`could not tell`, "could not tell", `"unknown"`),
	avoid(`nothing says otherwise`, "nothing says otherwise", `"no evidence was found"`),
	// Invented collectives.
	avoid(`leads? (to|nowhere|round)`, "the names lead to nft", `"points to" or "resolves to"`),
	avoid(`led (to|nowhere)`, "the name led nowhere", `"pointed to" or "was broken"`),
	avoid(`leading nowhere`, "a name leading nowhere", `"broken link"`),
	avoid(`(names|links) (in \S+ )?(are |were |have been )?moved`, "6 links moved", `"repointed"`),
	avoid(`(move|moves|moving) the (six )?names`, "it moves the names", `"repoint the links"`),
	avoid(`names stay moved`, "the names stay moved", `"the links stay as they are"`),
	avoid(`(mode|backend) (is|was) asked for`, "the mode was asked for", `"requested" or "set"`),
	// Existence.
	avoid(`(is|are|was|were) not there now`, "x_tables are not there now", `"is not loaded"`),
	avoid(`what is there`, "it looks at what is there", `"what exists"`),
	// Words nobody uses.
	avoid(`but for`, "nothing changes, but for packages", `"except for"`),
	avoid(`afresh`, "each call decides afresh", `"again"`),
	avoid(`anew`, "it makes them anew", `"again"`),
	avoid(`meanwhile`, "meanwhile it waits", `"at the same time"`),
	avoid(`in force`, "both are in force", `"active"`),
	avoid(`gravest`, "the gravest thing", `"most severe"`),
	avoid(`likeliest`, "the likeliest cause", `"most likely"`),
	avoid(`twins?`, "and their ip6tables twins", `"counterparts"`),
	avoid(`to and fro`, "moved to and fro", `"back and forth"`),
	avoid(`for want of`, "for want of a capability", `"because ... is missing"`),
	avoid(`may be somebody's`, "that may be somebody's", `"that this wrapper did not create"`),
	avoid(`somebody's`, "somebody's file", `"a user's"`),
	// Comparisons.
	avoid(`if as many`, "nft if as many", `"nft on a tie"`),
	avoid(`another than`, "another than the host's", `"other than"`),
	avoid(`the same to a`, "a full disk is the same to a call", `"has the same effect"`),
	// Possession by "of".
	avoid(`(rules?|programs?|modules?|tables?|chains?) of (nft|legacy|kubelet|kubelet's)`, "the programs of legacy", `"legacy programs", "kubelet chain"`),
	avoid(`programs? of iptables`, "a program of iptables", `"iptables program"`),
	// Word order.
	avoid(`the same with (podman|docker)`, "The same with podman", `"podman works the same way"`),
	avoid(`(does|do) as well`, "bookworm does as well", `"works too"`),
	avoid(`that makes no sense`, "a call that makes no sense", `"wrong usage"`),
	avoid(`has a say`, "who has a say in it", `"can influence"`),
	// Marketing.
	avoid(`seamless(ly)?|blazing(ly)?|effortless(ly)?|robust(ly|ness)?|powerful|leverage[sd]?|utili[sz]e[sd]?`, "a seamless wrapper", `nothing, or a number`),
}
