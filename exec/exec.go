// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package exec knows the six commands of iptables. It finds the program that implements a command in one backend, and
// becomes it.
//
// A program that wants to use the host's backend asks package detect for it, and Find for the path: see the example.
//
// iptables is a program of Linux. On other systems this package can be built, and finds nothing.
//
// From v1.0.0 on, what a program that uses this package relies on stays: later releases of v1 may add names, but remove
// and change none.
package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// ErrMissing means that there is no program for a command in a backend.
var ErrMissing = errors.New("no such program")

// Names returns the six commands that the wrapper stands in for. The slice is the caller's.
func Names() []string { return iptables.Commands() }

// Find returns the absolute path of the program that implements a command, such as "iptables-restore", in one backend.
// It looks in the directories that are given, which must be absolute, then in /usr/sbin, /sbin, /usr/local/sbin and
// /usr/bin, never in PATH.
//
// In each directory it prefers the file of that command, such as iptables-nft-restore, which can be started as it is,
// over the multi-call program, such as xtables-nft-multi. That one goes by argv[0]: start it with the command's name
// there, as Become does. go-iptables cannot.
//
// The error wraps ErrMissing if there is no such program. Otherwise it says why a file that exists cannot be executed,
// or that the command, the backend or a directory is not one that Find knows.
func Find(mode detect.Mode, command string, dirs ...string) (string, error) {
	if !slices.Contains(Names(), command) {
		return "", fmt.Errorf("command %q is not one of %s", command, strings.Join(Names(), ", "))
	}
	if mode != detect.NFT && mode != detect.Legacy {
		return "", fmt.Errorf("backend %q is not one of nft, legacy", mode)
	}
	files := [...]string{iptables.Single(mode, command), iptables.MultiCall(mode)}
	var unusable error
	for _, dir := range slices.Concat(dirs, iptables.Dirs()) {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("directory %q is not absolute", dir)
		}
		for _, file := range files {
			path := dir + "/" + file
			err := executable(path)
			if err == nil {
				return path, nil
			}
			if unusable == nil && !errors.Is(err, os.ErrNotExist) {
				unusable = err
			}
		}
	}
	if unusable != nil {
		return "", unusable
	}
	return "", fmt.Errorf("%w: %s or %s", ErrMissing, files[0], files[1])
}

// Become replaces this process with a program by execve(2). The process ID, descriptors, working directory, limits and
// environment stay. argv[0] is the command's name, by which a multi-call program goes. It returns only if execve fails.
func Become(path string, argv []string) error {
	// syscall.Exec restores the limit on open files that the Go runtime raised when it started.
	return &os.PathError{Op: "execve", Path: path, Err: syscall.Exec(path, argv, os.Environ())}
}
