// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// What nft has made in iptables' tables.

func (o *observation) nftTable() *Finding {
	if o.wanted() != detect.NFT || o.blocked() {
		return nil
	}
	var look, quotes, made []string
	troubles := []struct {
		is           func(c chain, fails bool) bool
		begins, ends string
		chains       []string
	}{
		{
			is: func(c chain, fails bool) bool {
				return c.listing == unreadable || c.listing == newer && fails
			},
			begins: "iptables cannot read rules that were made with nft, or by a newer iptables: ",
			ends:   ". It lists such a table in part or not at all, and cannot check or remove a rule in it.",
		},
		{
			is:     func(c chain, _ bool) bool { return c.listing == altered },
			begins: "iptables lists rules without one of their conditions, because they were made with nft: ",
			ends: ". If iptables-restore writes back what iptables-save printed, a DROP of some packets becomes a " +
				"DROP of all.",
		},
		{
			is:     func(c chain, _ bool) bool { return c.foreign },
			begins: "iptables does not list base chains that were made with nft in its tables: ",
			ends:   ". Packets pass them, and iptables-restore deletes them.",
		},
	}
	for _, t := range o.ruleset.tables {
		failure := o.failure(t)
		before := len(made)
		for i := range troubles {
			chains := t.chainsOf(func(c chain) bool { return troubles[i].is(c, failure != "") })
			troubles[i].chains = append(troubles[i].chains, t.named(chains)...)
			made = append(made, chains...)
			if slices.Contains(o.commands, "nft") {
				for _, name := range chains {
					look = append(look, fmt.Sprintf("nft list chain %v %s", t, name))
				}
			}
		}
		switch {
		case len(made) > before:
			look = append(look, t.save())
		case failure == "" || o.old():
			continue
		default:
			quotes = append(quotes, "iptables cannot read a rule that was made with nft, or by a newer iptables.")
			look = append(look, t.save())
		}
		if failure != "" {
			quotes = append(quotes, failure)
		}
	}
	var parts []string
	for _, trouble := range troubles {
		if len(trouble.chains) > 0 {
			parts = append(parts, trouble.begins+list(trouble.chains)+trouble.ends)
		}
	}
	parts = append(parts, quotes...)
	if len(parts) == 0 {
		return nil
	}
	do := "Have " + makers(made) + " use a table with a name of its own, or use iptables. "
	if len(quotes) > 0 {
		do += "If a newer iptables made the rules, install that in the image. "
	}
	const most = 4 // commands, which show enough
	return &Finding{
		Severity: problem,
		Text:     strings.Join(parts, " "),
		Look:     look[:min(most, len(look))],
		Do:       do + "Until then, let nothing here save and restore a whole table, as iptables-persistent does.",
	}
}

// makers are the programs that make some chains.
func makers(chains []string) string {
	programs := map[string]bool{}
	for _, name := range chains {
		programs[cmp.Or(ownerOf(name), "the program that uses nft directly")] = true
	}
	if len(programs) == 0 {
		return "the program that uses nft directly"
	}
	return strings.Join(slices.Sorted(maps.Keys(programs)), " and ")
}

// save is the command that lists the table.
func (t table) save() string { return saves[t.family] + " -t " + t.name }

// madeByNFT reports whether nft has made a chain, or a rule in it that iptables does not list as it is.
func madeByNFT(c chain) bool { return c.foreign || c.listing >= altered }

// chainsOf are the names of the chains of which something is true.
func (t table) chainsOf(is func(chain) bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(t.chains)) {
		if is(*t.chains[name]) {
			names = append(names, name)
		}
	}
	return names
}

// named are chains as a sentence has them: chain "ts-input" of ip filter (Tailscale).
func (t table) named(chains []string) (all []string) {
	for _, name := range chains {
		words := fmt.Sprintf("chain %q of %v", name, t)
		owner := ownerOf(name)
		if owner != "" {
			words += " (" + owner + ")"
		}
		all = append(all, words)
	}
	return all
}

// failure quotes how iptables-save failed to read a table of nf_tables, "" if it did not. A crash counts: iptables-nft
// crashes at some rules of nft.
func (o *observation) failure(t table) string {
	for _, out := range o.runs {
		if out.Command != t.save() {
			continue
		}
		m, line := find(out.Text())
		var exit *exec.ExitError
		switch {
		case m.code == nftTable && !strings.Contains(line, "contains incompatible base-chains"):
			return fmt.Sprintf("%q printed %q.", out.Command, line)
		case errors.As(out.Err, &exit) && exit.ExitCode() < 0 && o.broken() == "":
			return fmt.Sprintf("%q crashed (%v).", out.Command, out.Err)
		}
	}
	return ""
}
