// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// Where a finding can be looked at. Each command ends, also where iptables does not, and none has a name in it that
// somebody in the network could have chosen.

const (
	evidence = "iptables-wrapper detect -o table"
	release  = "uname -r"
	rights   = "grep -e Uid -e CapEff -e NoNewPrivs -e Seccomp /proc/self/status"
)

func show(commands ...string) func(*state) []string { return func(*state) []string { return commands } }

// again is the command that failed, or the file that cannot be started.
func again(code string) func(*state) []string {
	return func(s *state) []string {
		c, _ := s.with(code)
		var start *os.PathError
		if errors.As(c.Err, &start) {
			return showProgram(s)
		}
		return []string{c.Command}
	}
}

// showWay lists where the first command leads of which something is true.
func showWay(is func(*state, command) bool) func(*state) []string {
	return func(s *state) []string {
		const most = 5 // they may lead in a circle
		way := s.which(is)[0].way
		text := "ls -ld"
		for _, hop := range way[:min(len(way), most)] {
			text += " " + quoted(hop)
		}
		return []string{text}
	}
}

func showProgram(s *state) []string { return []string{"ls -lL " + quoted(s.commands[0].plan.Program)} }

// showOther are the commands that list the rules of the other backend, as far as they are in this image.
func showOther(s *state) []string {
	other := s.wanted().Other()
	if isInPath("nft") && other == detect.NFT {
		return []string{"nft list ruleset"}
	}
	var all []string
	for f, command := range savers {
		single := iptables.Single(string(other), command)
		has := func(t rules.Table) bool { return isOf(t, other) && int(familyOf(t)) == f }
		mayAsk := other == detect.NFT || s.process.netRaw
		if mayAsk && slices.ContainsFunc(s.tables, has) && isInPath(single) {
			all = append(all, single+" -c")
		}
	}
	if len(all) == 0 {
		all = append(all, evidence)
	}
	return all
}

func showNFT(*state) []string {
	if isInPath("nft") {
		return []string{"nft list ruleset"}
	}
	return []string{"iptables-save", "ip6tables-save"}
}

func isInPath(command string) bool {
	_, err := run.InPath(command)
	return err == nil
}

func showLock(s *state) []string {
	directory := filepath.Dir(s.lockFile)
	return []string{"ls -ld " + quoted(directory) + " " + quoted(s.lockFile), "cat /proc/self/mounts"}
}

func showExposed(s *state) []string { return []string{"ls -ld " + quoted(s.exposed[0])} }
