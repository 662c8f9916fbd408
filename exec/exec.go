// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package exec finds the program that implements one of the six commands of iptables in one backend, and becomes it.
// Package detect finds out which backend the host uses: see the example.
//
// On systems other than Linux, this package can be built, and finds nothing. Releases of v1 may add to this package,
// but remove and change nothing.
package exec

import (
	"cmp"
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

var (
	// ErrMissing means that there is no program for a command in a backend.
	ErrMissing = errors.New("no such program")
	// ErrItself means that the running file is in the place of a program: it would execute itself again and again.
	ErrItself = errors.New("it is the running program itself")
)

// Commands returns the six commands that the wrapper stands in for. The slice is the caller's.
func Commands() []string { return iptables.Commands() }

// Program implements a command.
type Program struct {
	Path string // absolute
	// MultiCall is true if the program selects the command by argv[0], as xtables-nft-multi does. Become passes argv[0]
	// on. go-iptables does not set it, so it cannot start such a program.
	MultiCall bool
}

// Find returns the program that implements a command, such as "iptables-restore", in one backend. It looks in dirs,
// which must be absolute, then in /usr/sbin, /sbin, /usr/local/sbin and /usr/bin, never in PATH. In each directory it
// prefers the command's own program, such as iptables-nft-restore, to the multi-call program, such as
// xtables-nft-multi.
//
// Find takes /usr/sbin, /sbin and /usr/bin as they are. From any other directory, it does not use a program that users
// other than root and the caller own or can write, or whose directory they own or can write.
//
// The error wraps ErrMissing if there is no program, or none that is used, and ErrItself if the running file is in its
// place, which ends the search. Any other error describes why a program cannot be executed, or which argument is wrong.
func Find(b detect.Backend, command string, dirs ...string) (Program, error) {
	if !slices.Contains(Commands(), command) {
		return Program{}, fmt.Errorf("command %q is not one of %s", command, strings.Join(Commands(), ", "))
	}
	if !b.Valid() {
		return Program{}, fmt.Errorf("backend %q is not one of nft, legacy", b)
	}
	single := iptables.Single(string(b), command)
	multi := iptables.MultiCall(string(b))
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			return Program{}, fmt.Errorf("directory %q is not absolute", dir)
		}
	}
	var skipped error // why the first program that exists was not taken
	for _, dir := range slices.Concat(dirs, iptables.Dirs()) {
		for _, file := range [...]string{single, multi} {
			err := check(dir, file)
			switch {
			case err == nil:
				return Program{Path: dir + "/" + file, MultiCall: file == multi}, nil
			case errors.Is(err, ErrItself):
				return Program{}, err
			case !errors.Is(err, os.ErrNotExist):
				skipped = cmp.Or(skipped, err)
			}
		}
	}
	return Program{}, cmp.Or(skipped, fmt.Errorf("%w: %s or %s", ErrMissing, single, multi))
}

// Become replaces this process with a program by execve(2). The process ID, descriptors, working directory and limits
// stay. argv[0] must be the command's name, with or without a directory. It returns only if execve(2) fails.
func Become(p Program, argv, env []string) error {
	// syscall.Exec restores the limit on open files that the Go runtime raised when it started.
	return &os.PathError{Op: "execve", Path: p.Path, Err: syscall.Exec(p.Path, argv, env)}
}
