// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// What the kernel lacks.

const showEvidence = "iptables-wrapper detect -o table"

// adviseModules says what to do if the kernel lacks a part.
func (s *state) adviseModules() string {
	do := "On the node, install all modules of the running kernel (RHEL 10: kernel-modules-extra), and load what is " +
		"missing."
	if s.network.Own {
		return do
	}
	return do + " If the kernel was updated since the node booted, reboot it: the modules of the running kernel may " +
		"be gone."
}

func (s *state) kernel() *Finding {
	if s.isBlocked() || s.scarce != nil {
		return nil
	}
	lacksNFT, lacksLegacy := s.lacksNFT(), s.lacksLegacy()
	found := Finding{Severity: problem, Look: []string{showEvidence, "uname -r"}, Do: s.adviseModules()}
	if s.lacks != "" && s.host.Evidence.Lacks == "" { // detect had no need to ask
		found.Look = []string{"iptables -m comment -h", "iptables-save -t nat", "uname -r"}
	}
	failed := s.host.Evidence.Of(s.wanted()).Err
	said := s.said(kernel)
	switch {
	case s.emulated && s.host.Evidence.NFT.Kernel != detect.Yes:
		found.Text = "iptables cannot work here with either backend: an emulator runs the programs of this image, " +
			"which are for another architecture, and it does not pass netfilter's questions on to the kernel."
		found.Look = []string{"ls -l /proc/thread-self/exe"}
		found.Do = "Use the image for the architecture of this machine (docker run --platform)."
	case lacksNFT != "" && lacksLegacy != "":
		found.Text = "iptables cannot work here with either backend: " + lacksNFT + ", and " + lacksLegacy + "."
	case lacksNFT != "" && s.wanted() == detect.NFT:
		found.Text = "iptables fails here: it should run nft, and " + lacksNFT + "."
	case lacksLegacy != "" && s.wanted() == detect.Legacy:
		found.Text = "iptables fails here: it should run legacy, and " + lacksLegacy + "."
		found.Do = s.withoutLegacy()
	case said != nil:
		found.Text = "iptables fails here, because the kernel lacks a part of " +
			string(said.backend) + ". " + said.quote()
		found.Look = []string{said.Command}
		if said.backend == detect.Legacy {
			found.Do = s.withoutLegacy()
		}
	case s.failing(lacksKernel) != nil:
		return s.failing(lacksKernel)
	case failed != nil && !hasFindingElsewhere(failed):
		found.Text = fmt.Sprintf("The kernel does not answer a question about %s: %s.", s.wanted(),
			firstLine(failed.Error()))
		found.Look = []string{showEvidence}
		found.Do = "Look at the kernel's log on the node (dmesg), and at the seccomp profile of the container."
	default:
		return nil
	}
	return &found
}

// hasFindingElsewhere reports whether noProgram or uncertain explains an error, or whether it may be gone a moment
// later.
func hasFindingElsewhere(err error) bool {
	return errors.Is(err, xtables.ErrNoProc) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, xtables.ErrChanged) || errors.Is(err, nft.ErrChanged) || errors.Is(err, nft.ErrTooLarge)
}

// withoutLegacy says what to do if legacy runs here, and the kernel lacks it.
func (s *state) withoutLegacy() string {
	switch {
	case s.names[0].call.How == plan.Asked:
		return "Load ip_tables, iptable_filter and iptable_nat on the node."
	case s.network.Own:
		return s.cause(s.names[0]).do
	}
	return s.cause(s.names[0]).do + " Only if the node itself uses legacy (iptables --version there), load " +
		"ip_tables, iptable_filter and iptable_nat on the node."
}

// lacksNFT is a clause about what keeps nft from working, "" if nothing is known to.
func (s *state) lacksNFT() string {
	switch {
	case s.host.Evidence.NFT.Kernel == detect.No:
		return "this kernel has no nf_tables"
	case s.lacks != "":
		return "nf_tables lacks " + s.lacks
	}
	return ""
}

// lacksLegacy is a clause about what keeps legacy from working, "" if nothing is known to.
func (s *state) lacksLegacy() string {
	if s.host.Evidence.Legacy.Kernel == detect.No && !(s.loadable && s.process.sysModule) {
		return "ip_tables is not loaded, and this container cannot load it"
	}
	return ""
}
