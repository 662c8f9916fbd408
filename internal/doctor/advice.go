// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
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
func showWay(is func(*state, Command) bool) func(*state) []string {
	return func(s *state) []string { return []string{"ls -ld " + strings.Join(s.which(is)[0].way(), " ")} }
}

// showOther are the commands that list the rules of the other backend, as far as they are in this image.
func showOther(s *state) (all []string) {
	other := s.wanted().Other()
	if other == detect.NFT && isInPath("nft") {
		return showNFT(s)
	}
	for _, f := range families {
		single := iptables.Single(string(other), savers[f])
		isFamily := func(t rules.Table) bool { return familyOf(t) == f }
		mayAsk := other == detect.NFT || !slices.Contains(s.process.Missing, netRaw)
		if mayAsk && isInPath(single) && slices.ContainsFunc(s.used(other), isFamily) {
			all = append(all, single+" -c")
		}
	}
	if len(all) == 0 {
		return []string{evidence}
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

func showProgram(s *state) []string { return []string{"ls -lL " + quoted(s.commands[0].Call.Program)} }
func showExposed(s *state) []string { return []string{"ls -ld " + quoted(s.exposed[0])} }
func showLock(s *state) []string {
	return []string{"ls -ld " + quoted(filepath.Dir(s.lockFile)) + " " + quoted(s.lockFile), "cat /proc/self/mounts"}
}

// What can be done from here. What a failing call prints, too, is in the table of remedies.

const (
	agree = "Have all programs in this network use one backend: that of the program whose backend cannot be changed. " +
		"Rules that no program makes any more end with the network: delete the Pod or the container, or drain and " +
		"reboot the node."
	ownTable = "Have the program that made this with nft use a table with a name of its own, or install an iptables " +
		"as new as the one that made it. Until then, let nothing here save and restore a whole table."
	modules = "On the node, install all modules of the running kernel (RHEL 10: kernel-modules-extra). If the kernel " +
		"was updated since the node booted, reboot the node."
	modprobe = "Have the node load ip_tables, iptable_filter and iptable_nat, for IPv6 ip6_tables and ip6table_filter."
	library  = "In the image, install iptables again, for this architecture, with its libraries and its xtables " +
		"directory. Unset XTABLES_LIBDIR and LD_LIBRARY_PATH."
	unknown = "If the message does not say why, look at the seccomp profile and the limits of the container, and " +
		"install iptables again in the image."
	hanging = "Find out where it hangs, for example in a file system that does not answer."
	newer   = "In the image, install iptables 1.8.8 or newer."
	restart = ", and restart the program that makes the rules."
)

func advise(text string) func(*state) string { return func(*state) string { return text } }

// remedyFor is what the table of remedies has for errors.
func remedyFor(errs ...error) string {
	_, text := remedy.For(errors.Join(errs...))
	return sentence(cmp.Or(text, remedy.Unknown))
}

func permit(s *state) string {
	c, _ := s.with(notPermitted)
	lacks := s.lacks(cmp.Or(c.backend, s.wanted()))
	switch {
	case lacks != "" && s.process.User != 0:
		return "Run the container as root (runAsUser: 0), with NET_ADMIN and NET_RAW added. For another user, the " +
			"image must give both as file capabilities to the programs of iptables and to the wrapper."
	case lacks != "":
		return "Add NET_ADMIN and NET_RAW to securityContext.capabilities of the container (docker run " +
			"--cap-add=NET_ADMIN --cap-add=NET_RAW)."
	case s.process.UserNamespace == detect.Yes:
		return "If the rules are for the node, run the container without a user namespace: no hostUsers: false, no " +
			"rootless Docker or Podman. Otherwise give it a network of its own."
	}
	return "Look for what forbids it: a seccomp profile, AppArmor, SELinux or a sandbox. The node's audit log may " +
		"name it."
}

// repair says how a command comes to lead to a program that can be executed.
func repair(s *state) string {
	c := s.which(fails)[0]
	switch {
	case errors.Is(c.Call.Err, errNotInPath):
		return "Add " + quoted(filepath.Dir(c.Path)) + " to PATH in the Pod's spec or in the image."
	case c.isAbsent():
		return remedyFor(exec.ErrMissing, remedy.ErrInstall)
	case c.ResolvesTo == "" && c.Switch != "" && look.At(c.wrapper()).Err == nil: // what was stored is gone
		return "In the image, install iptables, and end its build with RUN " + c.wrapper() + " reset."
	case c.ResolvesTo == "":
		return "In the image, remove " + quoted(c.Path) + ", and run iptables-wrapper install" + option(c) + "."
	}
	return remedyFor(c.Call.Err)
}

// mend is about a program that does not start, or fails for a reason of its own. The wrapper prints a remedy.
func mend(code, otherwise string) func(*state) string {
	return func(s *state) string {
		c, _ := s.with(code)
		_, try, isWrapper := strings.Cut(c.Stderr, "iptables-wrapper: try: ")
		var start *os.PathError
		text := otherwise
		switch {
		case s.known() && c.backend != s.host.Backend:
			return follow(s) // it should run another program
		case errors.As(c.Err, &start):
			start.Op = "execve" // not "fork/exec"
			text = remedyFor(start)
		case isWrapper:
			text = sentence(strings.TrimSpace(try))
		}
		if strings.Contains(c.String(), unix.EACCES.Error()) {
			text += " AppArmor, SELinux or Landlock can refuse it, too."
		}
		return text
	}
}

// follow says how a command comes to run the backend of the host.
func follow(s *state) string {
	c := s.which(differs)[0]
	switch how, isRoot := c.Call.How, s.process.User == 0; {
	case how == plan.NotWrapped:
		return install(c)
	case how == plan.ByVariable:
		return "In the Pod's spec, the image or the entry point, remove " + plan.Variable + ", or set it to " +
			string(s.host.Backend) + "."
	case how == plan.Asked:
		return remedyFor(exec.ErrMissing)
	case how == plan.Stored && s.network.Process1 == detect.No:
		return "In the image of an agent that enters other networks, link the six commands straight to " +
			link.Wrapper + ", not to " + link.Switch + ": then nothing is stored."
	case how == plan.Stored && c.isReadOnly():
		return remedyFor(unix.EROFS, link.ErrStored)
	case how == plan.Stored && !isRoot:
		return "End the build of the image with RUN " + c.wrapper() + " reset, and start the container again. " +
			"Or have root run that in this container" + restart
	case how == plan.Recorded && !isRoot:
		return "Restart the container: what is recorded ends with it."
	}
	return "In this container, run " + c.wrapper() + " reset" + restart
}

func wrap(s *state) string {
	c := s.which(bypasses)[0]
	if c.Backend == "" {
		return "If it is a script that runs the wrapped iptables, or the host's, leave it. Otherwise, in the image, " +
			"remove it and run iptables-wrapper install" + option(c) + "."
	}
	return install(c)
}

// install says how a command comes to lead to the wrapper.
func install(c Command) string {
	return "In the image, run iptables-wrapper install" + option(c) + " after the last command that installs " +
		"iptables or sets alternatives."
}

// option is for install, and wrapper the command that runs the wrapper beside the switch.
func option(c Command) string     { return " --dir " + quoted(c.directory()) }
func (c Command) wrapper() string { return quoted(filepath.Join(c.directory(), link.Wrapper)) }

func giveLock(s *state) string {
	switch {
	case os.Getenv(lockVariable) != "":
		return "Unset " + lockVariable + ", or set it to a file that iptables can open and lock."
	case errors.Is(s.lockErr, errHeld):
		return "Find the process that holds it: lslocks lists it, if started where that process runs."
	case s.process.User != 0:
		return "In the image, make a file " + quoted(s.lockFile) + " that this user owns, or run the container as root."
	}
	return "Mount the node's " + quoted(s.lockFile) + " (hostPath, type: FileOrCreate), or in a network of its own, " +
		"a volume that all containers share. It must be a file on a local file system, and root's."
}

func choose(s *state) string {
	c := s.commands[0]
	change := "set " + plan.Variable + " to it"
	switch {
	case c.Call.How == plan.ByVariable:
		change = "compare it with " + plan.Variable
	case c.Call.How == plan.Stored && c.isReadOnly():
		change = "select it in the image, or where the volume is filled"
	case c.Call.How == plan.Stored: // nothing reads the variable
		change = "have root run " + c.wrapper() + " select with that backend here"
	case c.Call.How == plan.NotWrapped:
		change = "install the wrapper, and set " + plan.Variable + " to it"
	}
	text := "If you know the backend that the other programs in this network use, " + change + "."
	switch {
	case s.process.User != 0 && errors.Is(s.errors[detect.Legacy], unix.EACCES):
		return "Run the container with group 0 (runAsGroup: 0), which may read the list of legacy's tables. " + text
	case s.network.Own != detect.No:
		return "If the rules are meant for the node, give the container the node's network (hostNetwork: true, " +
			"docker run --network host). " + text
	}
	return text
}
