// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// standardDirs is where distributions put the programs.
var standardDirs = [...]string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"}

var (
	// ErrMissing: there is no program for the name and mode.
	ErrMissing = errors.New("no such program")
	// ErrRecursion: the program is this wrapper itself.
	ErrRecursion = errors.New("it is the wrapper itself")
)

// Program returns the path of the program that does in one mode what name does, "iptables-restore" for example: the
// multi-call program of the mode, or the program of that name. It looks beside the name that was called, beside the
// running executable, and in the standard directories, and never in PATH.
//
// The path may be relative, if the wrapper was called by a relative path.
func (w Wrapper) Program(mode, name string) (string, error) {
	return w.find(mode, name, dir(w.called))
}

// Has says whether the programs of a mode are there.
func (w Wrapper) Has(mode string) bool {
	_, err := w.Program(mode, "iptables")
	return err == nil
}

// find looks in first before the other directories.
func (w Wrapper) find(mode, name, first string) (string, error) {
	var unusable error // the first that is there and cannot be run
	for d := range w.dirs(first) {
		for _, candidate := range candidates(mode, name) {
			path := in(d, candidate)
			var stat unix.Stat_t
			switch err := unix.Stat(path, &stat); {
			case err != nil && isNotThere(err):
				continue
			case err != nil:
				unusable = cmp.Or(unusable, error(&os.PathError{Op: "stat", Path: path, Err: err}))
			case stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Mode&0o111 == 0:
				unusable = cmp.Or(unusable, error(&os.PathError{Op: "execve", Path: path, Err: unix.EACCES}))
			case w.runs(path, stat):
				return "", fmt.Errorf("%q: %w", path, ErrRecursion)
			default:
				return path, nil
			}
		}
	}
	if unusable != nil {
		return "", unusable
	}
	return "", fmt.Errorf("%w: %s, looked for in %s", ErrMissing, strings.Join(candidates(mode, name), " or "),
		strings.Join(slices.Collect(w.dirs(first)), ", "))
}

// dirs are the directories to look in, in this order. A caller with fewer rights than this process has no say in it.
func (w Wrapper) dirs(first string) iter.Seq[string] {
	return func(yield func(string) bool) {
		own := first
		if !w.Secure {
			if !yield(first) {
				return
			}
			if path, err := w.ownPath(); err == nil {
				own = dir(path)
			}
			if own != first && !yield(own) {
				return
			}
		}
		for _, d := range standardDirs {
			if (w.Secure || d != first && d != own) && !yield(d) {
				return
			}
		}
	}
}

// candidates are the files that can be the program, best first: xtables-nft-multi, iptables-nft-restore.
func candidates(mode, name string) []string {
	family, verb, _ := strings.Cut(name, "-")
	if verb != "" {
		verb = "-" + verb
	}
	return []string{"xtables-" + mode + "-multi", family + "-" + mode + verb}
}

// isBackend says whether a file of this name is one of iptables' own programs.
func isBackend(file string) bool {
	for _, mode := range []string{"nft", "legacy"} {
		for _, name := range names {
			if slices.Contains(candidates(mode, name), file) {
				return true
			}
		}
	}
	return file == "xtables-multi" // before 1.8
}
