// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package exec finds the program that implements a command of iptables in one backend. It starts nothing.
//
// A program that wants to use the host's backend asks package detect for it, and Find for the path: see the example. If
// the answer is not conclusive, it is a guess: keep it for as long as you use iptables, because changing the backend
// later would leave rules behind.
//
// iptables is a program of Linux. On other systems this package can be built, and finds nothing: the error wraps
// ErrMissing.
//
// From v1.0.0 on, what a program that uses this package relies on stays: later releases of v1 may add names, but remove
// and change none.
package exec

import (
	"fmt"
	"path"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

var (
	// ErrMissing means that there is no program for the command and backend.
	ErrMissing = programs.ErrMissing
	// ErrRecursion means that the program is a wrapper, which would look for a program in turn.
	ErrRecursion = programs.ErrRecursion
)

// Dirs returns the directories in which Find looks, in this order: those in which distributions install iptables. The
// slice is the caller's.
func Dirs() []string { return programs.StandardDirs() }

// Find returns the absolute path of the program that implements a command, such as "iptables-restore", in one backend.
// It looks in Dirs, never in PATH.
//
// In each directory it prefers a file that can be started as it is, such as iptables-nft-restore, over the multi-call
// program, such as xtables-nft-multi. That one goes by argv[0]: start it with the command's name there. go-iptables,
// which starts a program by its path alone, cannot: make a link with the command's name to it.
//
// The error wraps ErrMissing if there is no such program and ErrRecursion if a wrapper is in its place. Otherwise it
// says why a file that exists cannot be executed, or cannot be read and so might be a wrapper. An unknown command is an
// error, and so is an unknown backend, such as the zero Mode.
func Find(mode detect.Mode, name string) (string, error) { return FindIn(Dirs(), mode, name) }

// FindIn is Find with other directories. Where iptables is somewhere else, as on NixOS or below /opt, put that
// directory before those of Dirs:
//
//	exec.FindIn(append([]string{"/opt/iptables/sbin"}, exec.Dirs()...), mode, "iptables")
//
// The directories must be absolute: anybody may have put a program into the working directory. Without directories,
// nothing is found.
func FindIn(dirs []string, mode detect.Mode, name string) (string, error) {
	switch {
	case !programs.IsName(name):
		return "", fmt.Errorf("command %q is not one of %s", name, strings.Join(programs.Names(), ", "))
	case !programs.IsMode(mode):
		return "", fmt.Errorf("mode %q is not one of nft, legacy", mode)
	}
	for _, dir := range dirs {
		if !path.IsAbs(dir) {
			return "", fmt.Errorf("directory %q is not absolute", dir)
		}
	}
	return find(dirs, mode, name)
}
