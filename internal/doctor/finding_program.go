// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	osexec "os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// Whether iptables' program is there and starts.

const (
	installBoth = "In the image, install iptables 1.8.8 or newer with both backends."
	reinstall   = "Install iptables again in the image, with all files of its xtables directory."
)

func (s *state) noProgram() *Finding {
	found := s.brokenName()
	if found == nil {
		found = s.brokenProgram()
	}
	return found
}

// brokenName is about names that are not there, or that a shell cannot run.
func (s *state) brokenName() *Finding {
	n := s.names[0]
	directory := filepath.Dir(n.Path)
	absent := s.which(func(n name) bool { return isAbsent(n.Command) })
	broken := s.which(func(n name) bool { return (n.fault != nil || n.Err != nil) && !isAbsent(n.Command) })
	found := Finding{Severity: problem}
	switch {
	case len(absent) == len(s.names):
		found.Text = "There is no iptables in PATH or in " + directory + ": the image has none, or a volume covers it."
		found.Look = []string{"ls -l " + quoted(n.Path), "printenv PATH"}
		found.Do = installBoth + " Then run iptables-wrapper install there."
	case len(broken) > 0:
		n = broken[0]
		leads := "leads to a file that is missing"
		if n.isCircle() {
			leads = "leads in a circle"
		}
		found.Text = fmt.Sprintf("%s %s (%v).", n.Path, leads, n.Err)
		found.Look = []string{"ls -l " + quoted(n.way[len(n.way)-1]), "ls -lL " + quoted(n.Path)}
		found.Do = s.dangles(n)
		if n.fault != nil {
			found.Text = fmt.Sprintf("A call of %s fails: %v.", n.Command.Name, n.fault)
			found.Look = []string{"ls -ld " + quoted(directory) + " " + quoted(n.Path)}
			found.Do = cannotRun(n)
		}
		if len(broken) > 1 {
			found.Text += " These fail, too: " + list(pathsOf(broken[1:])) + "."
		}
	case !n.inPath && !isAbsent(n.Command):
		found.Text = "Programs do not find iptables: it is in " + directory + ", which is not in PATH."
		found.Look = []string{"printenv PATH"}
		found.Do = "Add " + directory + " to PATH, in the image or in the Pod's spec."
	case isAbsent(n.Command):
		found.Text = "There is no " + n.Path + ", but other commands of iptables are there."
		found.Look = []string{"ls -l " + quoted(n.Path)}
		found.Do = s.adviseInstall(n)
	default:
		return nil
	}
	return &found
}

// brokenProgram is about programs that do not run, or do not list the rules.
func (s *state) brokenProgram() *Finding {
	p := s.program(s.wanted())
	missing := s.which(func(n name) bool { return n.leads() && n.call.Err != nil })
	said := s.said(noProgram)
	found := Finding{Severity: problem, Look: []string{"iptables --version"}}
	switch {
	case s.variErr != nil: // see wrongBackend
		return nil
	case s.noProc != nil && s.names[0].Wrapper:
		found.Text = fmt.Sprintf("Every call of iptables fails with status 126: %v (%v).", plan.ErrNoProc, s.noProc)
		found.Do = try(plan.ErrNoProc)
	case len(missing) > 0:
		n := missing[0]
		found.Text = fmt.Sprintf("%s fails here: %v.", n.Command.Name, n.call.Err)
		found.Look = []string{n.Command.Name + " --version"}
		found.Do = try(n.call.Err)
	case s.scarce != nil:
		found.Text = "Doctor ran out of processes, open files or memory (" + firstLine(s.scarce.Error()) + "), so " +
			"this report is incomplete. The client of iptables may meet the same limit."
		found.Look = []string{"cat /proc/self/limits"}
		found.Do = "Raise the limit on processes (pids of the container, ulimit -u), on open files (ulimit -n) or on " +
			"memory. Then run doctor again."
	case s.isBlocked(), s.kernel() != nil, len(s.which(name.isForeign)) > 0: // see notWrapped
		return nil
	case s.hangs != "":
		found.Text = fmt.Sprintf("iptables hangs here: %q did not end in time.", s.hangs)
		found.Look = []string{"ls -l " + quoted(s.hangs)}
		found.Do = "If that is a script, correct it. Otherwise look at the kernel's log on the node (dmesg)."
	case p.Path != "" && p.err != nil && !errors.Is(p.err, run.ErrRefused):
		found.Text = fmt.Sprintf("iptables fails here: %s does not start (%s).", p.Path, p.Error)
		if errors.Is(p.err, unix.EACCES) {
			found.Look = []string{"ls -lL " + quoted(p.Path), "cat /proc/self/mounts"}
		}
		found.Do = doesNotStart(p.err)
	case s.failing(lacksLibrary) != nil:
		return s.failing(lacksLibrary)
	case said != nil:
		found.Text = "iptables cannot list its rules here, because the image lacks a library. " + said.quote()
		found.Look = []string{said.Command}
		found.Do = reinstall
	default:
		return s.unexplained()
	}
	return &found
}

// doesNotStart says what to do about a program that is there and does not start.
func doesNotStart(err error) string {
	var exit *osexec.ExitError
	if errors.As(err, &exit) { // it was started, and has printed what is wrong
		return "In the image, install iptables for this architecture, 1.8.8 or newer, with its libraries."
	}
	return try(err)
}

// cannotRun says what to do if a shell does not run the file with one of the six commands.
func cannotRun(n name) string {
	if errors.Is(n.fault, unix.EISDIR) {
		return "In the image, or in the volume that covers it, remove this directory, and run iptables-wrapper install."
	}
	return "Let everybody enter " + filepath.Dir(n.Path) + " and execute the file, in the image or in the volume " +
		"that covers it, which must not be mounted noexec."
}

// dangles says what to do about a name that leads to nothing.
func (s *state) dangles(n name) string {
	if !n.canReset || n.isCircle() {
		return s.adviseInstall(n)
	}
	return "If the image has iptables' programs, run " + wrapper(n.Switch) + " reset: then calls decide again. " +
		"Otherwise install iptables in the image again, and run iptables-wrapper install there."
}

// unexplained is about a command that failed for a reason that nothing else explains.
func (s *state) unexplained() *Finding {
	for _, out := range s.saves {
		code, _ := out.message()
		if out.Err == nil || errors.Is(out.Err, run.ErrRefused) || code != "" || s.failure(out) != "" {
			continue
		}
		return &Finding{
			Severity: problem,
			Text:     fmt.Sprintf("iptables fails here (%v): %s", out.Err, quote(out.Command, firstLine(out.Text()))),
			Look:     []string{out.Command},
			Do: "Look at all that the command prints, at the container's memory limit, and at the kernel's log on " +
				"the node (dmesg).",
		}
	}
	return nil
}

// firstFaithful is the first release that reads every rule of later ones. An older iptables-nft drops the matches that
// it does not know when it reads a rule, and writes the rule back without them (kubernetes/kubernetes#112477,
// cloudnativelabs/kube-router#1370).
var firstFaithful = []int{1, 8, 8}

// old reports whether iptables-nft here is known to lose parts of rules.
func (s *state) old() bool { return isOld(s.program(detect.NFT).Version) }

// isOld reports whether a line such as "iptables v1.8.7 (nf_tables)" names a release before firstFaithful.
func isOld(version string) bool {
	release := make([]int, 3)
	_, err := fmt.Sscanf(version, "iptables v%d.%d.%d", &release[0], &release[1], &release[2])
	return err == nil && slices.Compare(release, firstFaithful) < 0
}

// oldIptables is about what may go wrong. If iptables already cannot list a table, that is in nftTable.
func (s *state) oldIptables() *Finding {
	if s.wanted() != detect.NFT || !s.old() {
		return nil
	}
	p := s.program(detect.NFT)
	return &Finding{
		Severity: warning,
		Text: fmt.Sprintf("%s is %s. When it writes a table back, it loses conditions of rules that 1.8.8 or newer "+
			"has made: a DROP of some packets becomes a DROP of all.", p.Path, p.Version),
		Look: []string{"iptables --version"},
		Do:   installBoth,
	}
}
