// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// remarks adds what the user should know although the wrapper works.
func (w work) remarks() {
	w.remarkPrograms()
	w.remarkCapabilities()
	w.remarkOtherPaths()
}

// remarkPrograms adds remarks on missing programs, and on versions. A program that cannot be started, as in an image
// for another architecture, has no known version.
func (w work) remarkPrograms() {
	nft, legacy := w.program(detect.NFT), w.program(detect.Legacy)
	for _, missing := range []struct {
		backend detect.Backend
		path    string
	}{
		{detect.NFT, nft},
		{detect.Legacy, legacy},
	} {
		if missing.path == "" {
			w.done.remark("there is no iptables for %s here: on a host that uses %s, the commands end with status 127",
				missing.backend, missing.backend)
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

// releaseOf runs a program to get its version. It does not start a program that others can replace.
func releaseOf(program string) iptables.Release {
	s := start.Starter{Limit: start.Limit}
	return iptables.ParseRelease(s.Run(program, detect.NFT, "iptables", "--version").Stdout)
}

// searched are the directories in which shells and clients look for iptables.
var searched = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// remarkOtherPaths adds a remark for each other directory whose iptables bypasses the wrapper. /sbin may be /usr/sbin.
func (w work) remarkOtherPaths() {
	var seen []link.ID
	for _, path := range searched {
		id, err := link.IDAt(path)
		if err != nil || w.IsAt(path) || slices.Contains(seen, id) {
			continue
		}
		seen = append(seen, id)
		d, err := link.Open(path)
		if err != nil {
			continue
		}
		defer d.Close()
		names := link.Look(d)
		i := slices.IndexFunc(names, func(n link.Name) bool { return n.Err == nil && n.Switch == "" && !n.Wrapper })
		if i >= 0 {
			w.done.remark("%q bypasses the wrapper: it runs %q", d.Join(names[i].Name), names[i].ResolvesTo)
		}
	}
}
