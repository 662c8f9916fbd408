// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// What the kernel lacks.

const (
	showEvidence = "iptables-wrapper detect -o table"
	loadModules  = "On the node, install all modules of the running kernel (RHEL 10: kernel-modules-extra), and load " +
		"what is missing. If the kernel was updated since the node booted, reboot it: the modules of the running " +
		"kernel may be gone."
)

func (o *observation) kernel() *Finding {
	if o.blocked() {
		return nil
	}
	nft, legacy := o.lacksNFT(), o.lacksLegacy()
	found := Finding{Severity: problem, Look: []string{showEvidence, "uname -r"}, Do: loadModules}
	if o.lacks != "" && o.Host.Evidence.Lacks == "" { // detect had no need to ask
		found.Look = []string{"iptables -m comment -h", "uname -r"}
	}
	switch {
	case nft != "" && legacy != "":
		found.Text = "iptables cannot work here with either backend: " + nft + ", and " + legacy + "."
	case nft != "" && o.wanted() == detect.NFT:
		found.Text = "iptables fails here: it should run nft, and " + nft + "."
	case legacy != "" && o.wanted() == detect.Legacy:
		found.Text = "iptables fails here: it should run legacy, and " + legacy + "."
		found.Do = o.withoutLegacy()
	case o.Here.Backend == o.wanted():
		return o.lacksMatch()
	default:
		return nil
	}
	return &found
}

// withoutLegacy is what helps if legacy runs here, and the kernel lacks it.
func (o *observation) withoutLegacy() string {
	const load = " Only if the node itself uses legacy (iptables --version there), " +
		"load ip_tables, iptable_filter and " +
		"iptable_nat there."
	switch o.Here.How {
	case here.Stored:
		return "In this container, run iptables-wrapper reset: then calls choose a backend that works." + load
	case here.Variable:
		return "Remove " + call.Variable + ", in the Pod's spec or wherever it is set: then calls choose a backend " +
			"that works." + load
	}
	return useNFT
}

// lacksNFT is a clause about what keeps nft from working, "" if nothing is known to.
func (o *observation) lacksNFT() string {
	switch {
	case o.Host.Evidence.NFT.Kernel == detect.No:
		return "this kernel has no nf_tables"
	case o.lacks != "":
		return "nf_tables lacks " + o.lacks
	}
	return ""
}

// lacksLegacy is a clause about what keeps legacy from working, "" if nothing is known to.
func (o *observation) lacksLegacy() string {
	if o.Host.Evidence.Legacy.Kernel == detect.No && !(o.loadable && o.process.sysModule) {
		return "ip_tables is not loaded, and this container cannot load it"
	}
	return ""
}

// lacksMatch is about a match or another part that is missing by what iptables printed, even if it ended with status 0.
// That a match cannot be loaded has two causes: its library or the kernel's module is missing.
func (o *observation) lacksMatch() *Finding {
	for i := range o.Messages {
		s := &o.Messages[i]
		switch {
		case s.Code == kernel && nameIn(s.Line) == "":
			found := s.finding()
			if found.Do == useNFT {
				found.Do = o.withoutLegacy()
			}
			return found
		case s.Code == kernel, s.message.library && o.library:
			name := nameIn(s.Line)
			return &Finding{
				Severity: problem,
				Text: fmt.Sprintf("The kernel lacks its part of the match or target %q, so rules with it fail. The "+
					"image has the library. ", name) + s.quote(),
				Look: []string{s.Command},
				Do:   "Its module is usually xt_" + name + "; nft also needs nft_compat. " + loadModules,
			}
		}
	}
	return nil
}

// nameIn is the match or target that a message names: "Extension comment revision 0 not supported", "Couldn't load
// match `comment':No such file or directory".
func nameIn(line string) string {
	_, after, found := strings.Cut(line, "Extension ")
	if found {
		name, _, _ := strings.Cut(after, " ")
		return name
	}
	_, after, _ = strings.Cut(line, "`")
	name, _, _ := strings.Cut(after, "'")
	return name
}

// hasLibrary reports whether iptables' directory of extensions has a file.
func hasLibrary(file string) bool {
	for _, directory := range []string{"/usr/lib/*/xtables", "/usr/lib/xtables", "/usr/lib64/xtables", "/lib/xtables"} {
		found, _ := filepath.Glob(cmp.Or(os.Getenv("XTABLES_LIBDIR"), directory) + "/" + file) // a good pattern
		if len(found) > 0 {
			return true
		}
	}
	return false
}
