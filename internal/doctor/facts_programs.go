// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
)

// What the rules ask about iptables' programs, and about the kernel's part of a backend.

// wanted is the backend whose programs have to work: the host's where it is known, else that of iptables here.
func (r *Report) wanted() detect.Mode {
	if r.Host.Conclusive {
		return r.Host.Mode
	}
	return cmp.Or(r.Here.Backend, r.Host.Mode)
}

// programError is what is wrong with a backend's program.
func (r *Report) programError(backend detect.Mode) string {
	if r.nothingInstalled() {
		return "" // no-commands says it
	}
	for _, p := range r.Programs {
		if p.Mode == backend && p.Error != "" && !r.excused(p) {
			return string(p.Mode) + ": " + p.Error
		}
	}
	return ""
}

// nothingInstalled reports that there is neither a command nor a program.
func (r *Report) nothingInstalled() bool {
	program := slices.ContainsFunc(r.Programs, func(p Program) bool { return p.Path != "" })
	return len(r.absent) == len(r.Names) && !program
}

// excused reports that a program was not started, or that even a good one would fail: without CAP_NET_ADMIN, or
// without its backend in the kernel.
func (r *Report) excused(p Program) bool {
	if slices.ContainsFunc(r.unstarted, func(e exposure) bool { return e.file == p.Path }) {
		return true
	}
	return p.Path != "" && (r.blind() || r.lacks(p.Mode))
}

// lacks reports that the kernel cannot have a backend.
func (r *Report) lacks(mode detect.Mode) bool {
	return r.Host.Of(mode, detect.IPv4).Supported == detect.No || mode == detect.Legacy && !r.canLoad
}

// refused lists what nf_tables refused in the dry run.
func (r *Report) refused() string {
	var refused []string
	for _, e := range r.Host.Evidence {
		for _, f := range e.Features {
			if f.Has == detect.No && e.Supported != detect.No && !r.blind() {
				feature := strings.ReplaceAll(f.Name, "-", " ")
				refused = append(refused, fmt.Sprintf("a %s (%s: %v)", feature, e.Family, f.Err))
			}
		}
	}
	return strings.Join(refused, ", ")
}

// unusable reports that the program of one of the backends would not run here, whatever the rest is like.
func (r *Report) unusable() bool {
	return r.nothingInstalled() || r.programError(detect.NFT) != "" || r.programError(detect.Legacy) != ""
}

// working is a backend's program, if there is one that works.
func (r *Report) working(backend detect.Mode) (p Program, works bool) {
	i := slices.IndexFunc(r.Programs, func(p Program) bool { return p.Mode == backend && p.Error == "" })
	if i < 0 {
		return Program{}, false
	}
	return r.Programs[i], true
}

// losesRules is the path of iptables-nft if it loses parts of rules that newer versions made, else "".
func (r *Report) losesRules() string {
	for _, p := range r.Programs {
		if p.Mode == detect.NFT && install.LosesRules(p.Version) {
			return fmt.Sprintf("%s (%s)", p.Path, p.Version)
		}
	}
	return ""
}
