// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"fmt"
	osexec "os/exec"
	"slices"
	"strings"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// remarks says what the user should know of a wrapper that works.
func (w work) remarks() {
	w.remarkPrograms()
	w.remarkOtherPaths()
}

// release is a version of iptables.
type release [3]int

func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

func (r release) before(other release) bool { return slices.Compare(r[:], other[:]) < 0 }

// faithful is the first release that reads what later ones write. The ones before read a rule without the matches that
// they do not know, and write it back so (kubernetes/kubernetes#112477, cloudnativelabs/kube-router#1370).
var faithful = release{1, 8, 8}

// remarkPrograms is about which programs there are, and their versions. What cannot be started, as where an image is
// built for another architecture, has none.
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
	nftRelease, nftKnown := releaseOf(nft)
	if nftKnown && nftRelease.before(faithful) {
		w.done.remark("%q is version %s, which loses parts of rules that %s or newer wrote", nft, nftRelease, faithful)
	}
	legacyRelease, legacyKnown := releaseOf(legacy)
	if nftKnown && legacyKnown && nftRelease != legacyRelease {
		w.done.remark("the backends have different versions: %q is %s, %q is %s", nft, nftRelease, legacy, legacyRelease)
	}
}

// releaseOf asks a program for its version. A program that others can change is not started.
func releaseOf(program string) (r release, known bool) {
	if program == "" || isExposed(program) {
		return r, false
	}
	// That a program can hang says nothing about it.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var output bytes.Buffer
	cmd := osexec.CommandContext(ctx, program)
	cmd.Args = []string{"iptables", "--version"}
	cmd.Env = []string{}
	cmd.Stdin = strings.NewReader("")
	cmd.Stdout = &output
	cmd.Stderr = &output
	err := cmd.Run()
	if err != nil {
		return r, false
	}
	return parseRelease(output.String())
}

// parseRelease reads a line such as "iptables v1.8.9 (nf_tables)".
func parseRelease(line string) (r release, ok bool) {
	_, err := fmt.Sscanf(line, "iptables v%d.%d.%d", &r[0], &r[1], &r[2])
	return r, err == nil
}

// searched are the directories in which shells and clients look for iptables.
var searched = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// remarkOtherPaths names the other directories in which iptables bypasses every wrapper. /sbin may be /usr/sbin.
func (w work) remarkOtherPaths() {
	var seen []*dir.Dir
	for _, path := range searched {
		d, err := dir.Open(path)
		if err != nil {
			continue
		}
		defer d.Close()
		if d.Same(w.Dir) || slices.ContainsFunc(seen, d.Same) {
			continue
		}
		seen = append(seen, d)
		names := layout.Look(d, dir.ID{})
		i := slices.IndexFunc(names, func(n layout.Name) bool { return n.Err == nil && n.Switch == "" && !n.Wrapper })
		if i >= 0 {
			w.done.remark("%q bypasses the wrapper: it runs %q", d.Join(names[i].Name), names[i].ResolvesTo)
		}
	}
}
