// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// EACCES about legacy is a refusal for root. Another user may only lack the right to read a file of /proc.
func TestLegacyIsRefused(t *testing.T) {
	for user, want := range map[int]string{0: "the kernel refuses to answer", 1: ""} {
		s := permitted()
		s.host.Backend, s.host.Reason = detect.Legacy, detect.OnlySupported
		s.process.user = user
		s.host.Evidence.Legacy.Err = unix.EACCES
		says(t, "the names file", s.notPermitted(), want)
	}
}

// A message counts if the command failed.
func TestSaid(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{{nil, ""}, {errors.New("exit status 4"), "though CAP_NET_ADMIN is there"}} {
		s := permitted()
		s.saves = []save{{Output: run.Output{Stderr: "Permission denied (you must be root)", Err: test.err}}}
		says(t, "a message", s.notPermitted(), test.want)
	}
}

// One cause is one finding: another one explains what fails here.
func TestExplainedElsewhere(t *testing.T) {
	s := permitted()
	s.noProc = unix.ENOENT
	says(t, "the wrapper needs /proc", s.brokenProgram(), "fails with status 126")
	s.names[0].Wrapper = false
	says(t, "what needs no /proc", s.brokenProgram(), "")

	s = permitted()
	s.saves = []save{{Output: run.Output{Stderr: "no way", Err: errors.New("exit status 1")}}}
	says(t, "it fails", s.brokenProgram(), "no way")
	s.lacks = "something"
	says(t, "it fails, and the kernel lacks something", s.brokenProgram(), "")
}

// A guess is silent only if it is nft, legacy is known to be empty, and nft was asked.
func TestHealthyGuess(t *testing.T) {
	s := permitted()
	says(t, "nft", s.uncertain(), "")
	s.host.Evidence.NFT.Err = nft.ErrTooLarge
	says(t, "nft, which was not read", s.uncertain(), "nothing proves")

	s = permitted()
	s.host.Evidence.Legacy.Kernel = detect.Yes
	s.names[0].call = plan.Plan{Backend: detect.Legacy, How: plan.NotWrapped}
	says(t, "legacy", s.uncertain(), "If it is nft, install the wrapper first.")
}

// What fails here has a line for each that lacks it.
func TestFailsHere(t *testing.T) {
	r := Report{Fails: []Extension{{Name: "-m set", Lacks: lacksLibrary}, {Name: "-m mark", Lacks: lacksKernel}}}
	text := strings.Join(r.Lines(), "\n")
	for _, want := range []string{
		"fail here:      -m set (the image lacks the libraries)", "fail here:      -m mark (the kernel lacks its part)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
