// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// remarks says what the user should know of a wrapper that works.
func (w work) remarks() {
	w.remarkPrograms()
	w.remarkOtherPaths()
}

// remarkPrograms is about which programs there are, and their versions. A program that cannot be started, as in an
// image for another architecture, has no known version.
func (w work) remarkPrograms() {
	nft, legacy := w.program(evidence.NFT), w.program(evidence.Legacy)
	for _, missing := range []struct {
		mode evidence.Mode
		path string
	}{
		{evidence.NFT, nft},
		{evidence.Legacy, legacy},
	} {
		if missing.path == "" {
			w.done.remark("there is no iptables for %s here: on a host that uses %s, the commands end with status 127",
				missing.mode, missing.mode)
		}
	}
	nftRelease := releaseOf(nft)
	if nftRelease.LosesRules() {
		w.done.remark("%q is version %s, which loses parts of rules that %s or newer wrote", nft, nftRelease,
			iptables.Faithful)
	}
	legacyRelease := releaseOf(legacy)
	if nftRelease.Known() && legacyRelease.Known() && nftRelease != legacyRelease {
		w.done.remark("the backends have different versions: %q is %s, %q is %s",
			nft, nftRelease, legacy, legacyRelease)
	}
}

// releaseOf asks a program for its version. A program that others can change is not started.
func releaseOf(program string) iptables.Release {
	s := start.Starter{Limit: start.Limit}
	return iptables.ParseRelease(s.Run(program, evidence.NFT, "iptables", "--version").Stdout)
}

// searched are the directories in which shells and clients look for iptables.
var searched = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// remarkOtherPaths names the other directories in which iptables bypasses every wrapper. /sbin may be /usr/sbin.
func (w work) remarkOtherPaths() {
	var seen []dir.ID
	for _, path := range searched {
		id, err := dir.IDAt(path)
		if err != nil || w.IsAt(path) || slices.Contains(seen, id) {
			continue
		}
		seen = append(seen, id)
		d, err := dir.Open(path)
		if err != nil {
			continue
		}
		defer d.Close()
		names := layout.Look(d, dir.ID{})
		i := slices.IndexFunc(names, func(n layout.Name) bool { return n.Err == nil && n.Switch == "" && !n.Wrapper })
		if i >= 0 {
			w.done.remark("%q bypasses the wrapper: it runs %q", d.Join(names[i].Name), names[i].ResolvesTo)
		}
	}
}
