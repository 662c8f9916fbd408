// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/extensions"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// lookForLibraries has the program of the wanted backend load the libraries that users need most. One with built-in
// extensions has them without a file.
func (r *Report) lookForLibraries(t tree.Tree) {
	p, works := r.working(r.wanted())
	if !works {
		return
	}
	program := p.Path
	r.unloadable = r.cannotLoad(t, program)
	if len(r.unloadable) == 0 && !r.rulesNeedLibraries() {
		return
	}
	r.hidingLibraries = eachUnset(func() bool {
		again := Report{Host: r.Host}
		if r.wanted() == detect.NFT {
			again.listTables(t, program)
		}
		return len(r.cannotLoad(t, program)) == 0 && !again.rulesNeedLibraries()
	})
}

// rulesNeedLibraries reports that iptables-nft cannot list a rule for lack of a library, as 1.8.9 says it:
//
//	Error: match extension not found
func (r *Report) rulesNeedLibraries() bool {
	return strings.Contains(strings.Join(r.unlisted, " "), "extension not found")
}

// library is one of iptables' libraries, and the option that has iptables load it.
type library struct {
	name   string
	option string
	value  string
	help   string // begins what only this library prints; "" if iptables ends with an error without it
}

func matchLibrary(name string) library { return library{name: name, option: "-m", value: name} }

func (l library) isMatch() bool { return l.option == "-m" }

// libraries are those that users of iptables need most: those of the extensions that need a kernel module, and others.
func libraries(family detect.Family) []library {
	icmp := matchLibrary("icmp")
	if family == detect.IPv6 {
		icmp = matchLibrary("icmp6")
	}
	all := []library{
		{name: "standard", option: "-j", value: accept, help: "standard match"}, // for verdicts, and jumps to chains
		icmp,
		matchLibrary("set"),
	}
	for _, x := range extensions.Wanted {
		l := matchLibrary(x.Name)
		if x.Target {
			l = library{name: x.Name, option: "-j", value: x.Name, help: x.Name + " target"}
		}
		all = append(all, l)
	}
	return all
}

// cannotLoad returns the libraries that a program cannot load.
func (r *Report) cannotLoad(t tree.Tree, program string) (missing []string) {
	for _, family := range families {
		all := libraries(family)
		if r.loadsMatches(t, program, family, all) || r.blamesEachMatch(t, program) {
			all = slices.DeleteFunc(all, library.isMatch)
		}
		for _, l := range all {
			if r.lacksLibrary(t, program, family, l) {
				missing = append(missing, fmt.Sprintf("%s (%s)", l.name, family))
			}
		}
	}
	return missing
}

// blamesEachMatch reports that a program says of each match that its library is missing. Up to 1.8.7, iptables-nft
// asks the kernel about each, and says so where it may not, even of comment, which it has loaded before.
func (r *Report) blamesEachMatch(t tree.Tree, program string) bool {
	lacksComment := r.lacksLibrary(t, program, detect.IPv4, matchLibrary("comment"))
	return lacksComment && r.loadsExtensions(t, program) == nil
}

// loadsMatches reports that one process loads all of the matches: it ends with an error at the first that it cannot
// load. What it prints besides is about the kernel, which it may not ask. Only where one is missing, each is asked for
// alone: a process for each of them would be most of what doctor costs.
func (r *Report) loadsMatches(t tree.Tree, program string, family detect.Family, all []library) bool {
	var options []string
	for _, l := range all {
		if l.isMatch() {
			options = append(options, l.option, l.value)
		}
	}
	_, _, err := r.printHelp(t, program, family, options...)
	return err == nil
}

// lacksLibrary reports that a program cannot load a library.
func (r *Report) lacksLibrary(t tree.Tree, program string, family detect.Family, l library) bool {
	stdout, stderr, err := r.printHelp(t, program, family, l.option, l.value)
	return l.missing(stdout, stderr, err)
}

// printHelp has a program print the help for options, which makes it load their libraries.
func (r *Report) printHelp(
	t tree.Tree, program string, family detect.Family, options ...string,
) (stdout, stderr string, err error) {
	return r.startPowerless(t, program, commandOf(family, ""), append(options, "-h")...)
}

// missing reports that this is what iptables prints of a library that it cannot load. For a match:
//
//	iptables v1.8.9 (nf_tables): Couldn't load match `conntrack':No such file or directory
//
// Up to 1.8.7, it also prints that where it has loaded the library and may not ask the kernel:
//
//	Warning: Extension conntrack is not supported, missing kernel module?
//
// Without a library, a target counts as a chain, and the help for it is not printed: "REJECT target options:".
func (l library) missing(stdout, stderr string, err error) bool {
	switch {
	case unreadableLibrary(stderr):
		return false
	case l.help != "":
		return err == nil && !strings.Contains(stdout, l.help)
	}
	return strings.Contains(stderr, ": Couldn't load ") && !strings.Contains(stderr, "missing kernel module")
}

// unreadableLibrary reports that a library is there, but this user may not read it:
//
//	/usr/lib/x86_64-linux-gnu/xtables/libxt_conntrack.so: Permission denied
func unreadableLibrary(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, ".so: ") && strings.HasSuffix(line, "Permission denied\n") {
			return true
		}
	}
	return false
}

// eachUnset unsets one after the other of the variables that say where libraries are, and returns the first without
// which something works.
func eachUnset(works func() bool) (name string) {
	for name := range strings.FieldsSeq(libraryVariables) {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		os.Unsetenv(name)
		cured := works()
		os.Setenv(name, value)
		if cured {
			return name
		}
	}
	return ""
}

// startPowerless starts a program with no capabilities but those by which it reads its libraries, and without a way to
// get any. It then loads them, and what it asks the kernel about them makes that load no module.
func (r *Report) startPowerless(t tree.Tree, program, name string, args ...string) (stdout, stderr string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			stdout, stderr, err = r.startPowerless(t, program, name, args...) // while this thread, the first, is taken
			return
		}
		err = dropCapabilities()
		if err == nil {
			stdout, stderr, err = r.start(t, program, name, args...)
		}
	}()
	<-done
	return stdout, stderr, err
}

// readFiles are the capabilities by which root reads any file, as its calls of iptables do.
const readFiles = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH

// dropCapabilities drops all capabilities of the calling thread but readFiles. Programs that it executes gain none
// either: not by running as root, and not by file capabilities.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err != nil {
		return err
	}
	var now [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	err = unix.Capget(&header, &now[0])
	if err != nil {
		return err
	}
	kept := now[0].Permitted & readFiles
	then := [2]unix.CapUserData{{Permitted: kept, Effective: kept}}
	return unix.Capset(&header, &then[0])
}
