// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// What nft has made in iptables' tables.

func (s *state) nftTable() *Finding {
	if s.wanted() != detect.NFT || s.isBlocked() {
		return nil
	}
	found := Finding{Severity: warning}
	if s.lists["nft"] {
		found.Look = []string{"nft list ruleset"}
	}
	var chains, parts []string
	for _, t := range s.nft.tables {
		made := nativeChains(t)
		for _, name := range made {
			chains = append(chains, inWords(t, name))
		}
		out := s.saved(t)
		failure, remark := s.failure(out), out.remark(foreignChains)
		switch {
		case failure != "":
			found.Severity = problem
			parts = append(parts, "iptables cannot list "+t.String()+", nor check or remove a rule in it, because a "+
				"rule was made with nft, or by a newer iptables. "+failure)
		case remark != "":
			parts = append(parts, "iptables does not list base chains that were made with nft in "+t.String()+
				". Packets pass them, and iptables-restore deletes them. "+quote(out.Command, remark))
		case len(made) == 0:
			continue
		}
		found.Look = append(found.Look, saves[familyOf(t)]+" -t "+t.Name)
	}
	if len(chains) > 0 {
		parts = append(parts, "Rules were made with nft in "+list(chains)+". iptables may list such rules without "+
			"their conditions: if iptables-restore writes back what iptables-save printed, a DROP of some packets can "+
			"become a DROP of all.")
	}
	if len(parts) == 0 {
		return nil
	}
	found.Text = strings.Join(parts, " ")
	found.Do = "The programs that made these rules or chains with nft should use tables with names of their own, or " +
		"iptables. "
	if found.Severity == problem {
		found.Do += "If a newer iptables made them, install that in the image. "
	}
	found.Do += "Until then, let nothing here save and restore a whole table, as iptables-persistent does."
	return &found
}

// inWords is a chain as a sentence has it: chain "ts-input" of ip filter (Tailscale).
func inWords(t iptables.Table, chain string) string {
	words := fmt.Sprintf("chain %q of %v", chain, t)
	owner := ownerOf(chain)
	if owner != "" {
		words += " (" + owner + ")"
	}
	return words
}

// saved is what iptables-save printed of a table of nf_tables, the zero save if it was not started.
func (s *state) saved(t iptables.Table) save {
	for _, out := range s.saves {
		if out.backend == detect.NFT && out.table == t.String() {
			return out
		}
	}
	return save{}
}

// failure quotes how iptables-save failed to read a table of nf_tables, "" if it did not. A crash counts: iptables-nft
// crashes at some rules of nft.
func (s *state) failure(out save) string {
	code, line := out.message()
	remark := out.remark(incompatible)
	var exit *exec.ExitError
	switch {
	case out.backend != detect.NFT:
		return ""
	case remark != "":
		return quote(out.Command, remark)
	case code == nftTable:
		return quote(out.Command, line)
	case errors.As(out.Err, &exit) && hasCrashed(exit) && s.program(detect.NFT).err == nil:
		return fmt.Sprintf("%q crashed (%v).", out.Command, out.Err)
	}
	return ""
}

// hasCrashed reports whether a signal ended a program, and not one that another process has sent: SIGKILL.
func hasCrashed(exit *exec.ExitError) bool {
	status, isUnix := exit.Sys().(syscall.WaitStatus)
	return isUnix && status.Signaled() && status.Signal() != syscall.SIGKILL
}
