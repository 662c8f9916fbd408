// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package exec finds the program that implements a command of iptables in one backend, and replaces the process
// with it.
//
// A program that wants to use the host's backend asks package detect for it, and Find for the path: see the
// example. If the answer is not conclusive, it is a guess: keep it for as long as you use iptables, because
// changing the backend later would leave rules behind.
//
// Before v1, names in this package may change, with a note in CHANGELOG.md; from v1 on, Go's compatibility rules hold.
package exec

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Find returns the absolute path of the program that implements a command, such as "iptables-restore", in one
// backend. It looks in /usr/sbin, /sbin, /usr/local/sbin and /usr/bin, never in PATH, and starts nothing.
//
// In each directory it prefers a file that can be started as it is, such as iptables-nft-restore, over the
// multi-call program, such as xtables-nft-multi. That one goes by argv[0]: start it with the command's name there.
// go-iptables, which starts a program by its path alone, cannot: make a link with the command's name to it.
//
// The error wraps ErrMissing if there is no such program and ErrRecursion if a wrapper is in its place. Otherwise
// it says why a file that exists cannot be executed, or cannot be read and so might be a wrapper. An unknown
// command or mode is an error too.
func Find(mode detect.Mode, name string) (string, error) {
	switch {
	case !programs.IsName(name):
		return "", fmt.Errorf("command %q is not one of %s", name, strings.Join(programs.Names(), ", "))
	case !slices.Contains(programs.Modes(), mode):
		return "", fmt.Errorf("mode %q is not one of nft, legacy", mode)
	}
	return findIn(programs.StandardDirs(), mode, name)
}

func findIn(dirs []string, mode detect.Mode, name string) (string, error) {
	files := []string{programs.Single(mode, name), programs.MultiCall(mode)}
	return tree.Tree{}.Find(slices.Values(dirs), files, isWrapper)
}

func isWrapper(path string, _ unix.Stat_t) (bool, error) {
	f, err := tree.Tree{}.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return programs.HasMarker(f), nil
}

// Become replaces this process with a program by execve(2): the process ID, descriptors, working directory and
// limits stay. Call it on the process' first thread. It returns only if execve fails.
//
// The wrapper's own build keeps more, see internal/process. In a program that imports this package, the environment
// is os.Environ, which is without empty strings and repeated variables, and a standard descriptor that was closed
// is open on /dev/null. Of the signals that were ignored when the process started, only SIGHUP, SIGINT, SIGCONT,
// SIGTSTP, SIGTTIN and SIGTTOU still are: the runtime handles the others, and execve resets what is handled to its
// default. Of those that were blocked, the ones that the runtime unblocks no longer are: those of faults,
// SIGSTKFLT, SIGCHLD, SIGURG, SIGPROF and 32 to 34.
//
// It goes through syscall.Exec, which restores the limit on open files that the runtime raised when it started.
func Become(path string, argv []string) error {
	process.RestoreMask()
	return &os.PathError{Op: "execve", Path: path, Err: unix.Exec(path, argv, process.Environment())}
}
