// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// What nft has made in iptables' tables.

func (s *state) nftTable() *Finding {
	if s.wanted() != detect.NFT || s.isBlocked() {
		return nil
	}
	var chains, parts, look []string
	found := Finding{Severity: warning}
	for _, t := range s.nft.tables {
		for _, name := range t.sorted(func(c *chain) bool { return c.native }) {
			chains = append(chains, inWords(t, name))
			look = append(look, s.listing(t), t.save())
		}
	}
	for _, out := range s.saves {
		failure := s.failure(out)
		remark := out.remark(foreignChains)
		switch {
		case failure != "" && (s.hasNative(out.table) || !s.old()):
			found.Severity = problem
			parts = append(parts, "iptables cannot list "+out.table.String()+", nor check or remove a rule in it, "+
				"because a "+
				"rule was made with nft, or by a newer iptables. "+failure)
		case remark != "":
			parts = append(parts, "iptables does not list base chains that were made with nft in "+out.table.String()+
				". Packets pass them, and iptables-restore deletes them. "+quote(out.Command, remark))
		default:
			continue
		}
		look = append(look, s.listing(out.table), out.Command)
	}
	if len(chains) > 0 {
		parts = append(parts, "Rules were made with nft in "+list(chains)+". iptables may list such rules without "+
			"their "+
			"conditions: if iptables-restore writes back what iptables-save printed, a DROP of some packets can "+
			"become a DROP "+
			"of all.")
	}
	if len(parts) == 0 {
		return nil
	}
	found.Text = strings.Join(parts, " ")
	found.Look = unique(look)
	found.Do = "Have the programs that made them with nft use tables with names of their own, or iptables. "
	if found.Severity == problem {
		found.Do += "If a newer iptables made the rules, install that in the image. "
	}
	found.Do += "Until then, let nothing here save and restore a whole table, as iptables-persistent does."
	return &found
}

// unique are the first of some commands, which show enough. No name of a chain is among them.
func unique(commands []string) (all []string) {
	const most = 4
	for _, command := range commands {
		if len(all) < most && !slices.Contains(all, command) {
			all = append(all, command)
		}
	}
	return all
}

// listing is the command that shows a table as it is.
func (s *state) listing(t table) string {
	if s.hasNFT {
		return "nft list table " + t.String()
	}
	return t.save()
}

// save is the command that lists a table.
func (t table) save() string { return saves[t.family] + " -t " + t.name }

// inWords is a chain as a sentence has it: chain "ts-input" of ip filter (Tailscale).
func inWords(t table, chain string) string {
	words := fmt.Sprintf("chain %q of %v", chain, t)
	owner := ownerOf(chain)
	if owner != "" {
		words += " (" + owner + ")"
	}
	return words
}

// hasNative reports whether nft has made a rule in a table of iptables.
func (s *state) hasNative(of table) bool {
	return slices.ContainsFunc(s.nft.tables, func(t table) bool {
		return t.String() == of.String() && len(t.sorted(func(c *chain) bool { return c.native })) > 0
	})
}

// failure quotes how iptables-save failed to read a table of nf_tables, "" if it did not. A crash counts: iptables-nft
// crashes at some rules of nft.
func (s *state) failure(out save) string {
	if out.backend != detect.NFT {
		return ""
	}
	code, line := out.message()
	remark := out.remark(incompatible)
	var exit *exec.ExitError
	switch {
	case remark != "":
		return quote(out.Command, remark)
	case code == nftTable:
		return quote(out.Command, line)
	case errors.As(out.Err, &exit) && exit.ExitCode() < 0 && s.program(detect.NFT).err == nil:
		return fmt.Sprintf("%q crashed (%v).", out.Command, out.Err)
	}
	return ""
}
