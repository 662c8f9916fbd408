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

// lookForLibraries has the program of the wanted backend load the libraries of the extensions that users need most. One
// with built-in extensions has them without a file.
func (r *Report) lookForLibraries(t tree.Tree) {
	i := slices.IndexFunc(r.Programs, func(p Program) bool { return p.Mode == r.wanted() && p.Error == "" })
	if i < 0 {
		return
	}
	program := r.Programs[i].Path
	r.unloadable = r.cannotLoad(t, program)
	if len(r.unloadable) == 0 && !r.rulesNeedLibraries() {
		return
	}
	r.hidingLibraries = eachUnset(func() bool {
		again := Report{Host: r.Host}
		if r.wanted() == detect.NFT {
			again.list(t, program)
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

// cannotLoad returns the extensions whose libraries a program cannot load.
func (r *Report) cannotLoad(t tree.Tree, program string) (missing []string) {
	for _, family := range families {
		for _, x := range extensions.Wanted {
			option := "-m"
			if x.Target {
				option = "-j"
			}
			stdout, stderr, err := r.startPowerless(t, program, commandOf(family, ""), option, x.Name, "-h")
			if lacksLibrary(x, stdout, stderr, err) {
				missing = append(missing, fmt.Sprintf("%s (%s)", x.Name, family))
			}
		}
	}
	return missing
}

// lacksLibrary reports that this is what iptables prints of an extension whose library it cannot load. For a match:
//
//	iptables v1.8.9 (nf_tables): Couldn't load match `conntrack':No such file or directory
//
// Up to 1.8.7, it also prints that where it has loaded the library and may not ask the kernel:
//
//	Warning: Extension conntrack is not supported, missing kernel module?
//
// Without a library, a target counts as a chain, and the help for it is not printed: "REJECT target options:".
func lacksLibrary(x extensions.Extension, stdout, stderr string, err error) bool {
	if x.Target {
		return err == nil && !strings.Contains(stdout, x.Name+" target")
	}
	return strings.Contains(stderr, ": Couldn't load ") && !strings.Contains(stderr, "missing kernel module")
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

// startPowerless starts a program without capabilities, and without a way to get any. It then loads its libraries, and
// what it asks the kernel about them makes that load no module.
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

// dropCapabilities drops all capabilities of the calling thread. Programs that it executes gain none either: not by
// running as root, and not by file capabilities.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err != nil {
		return err
	}
	var none [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&header, &none[0])
}
