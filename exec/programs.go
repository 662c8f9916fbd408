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

// Find returns the absolute path of the program that does in one mode, "nft" or "legacy", what one of the six names does,
// "iptables-restore" for example. It is for programs that are not the wrapper, looks in the standard directories only
// (/usr/sbin, /sbin, /usr/local/sbin, /usr/bin), never in PATH, and starts nothing.
//
// That may be a multi-call program, which goes by argv[0]: whoever starts it must put the name there.
//
// The error is ErrMissing if there is no such program, ErrRecursion if a wrapper is in its place, or says why it cannot be
// run, or not be told from a wrapper because it cannot be read. Another mode or name is an error too.
func Find(mode, name string) (string, error) {
	switch {
	case !slices.Contains(names[:], name):
		return "", fmt.Errorf("name %q is none of %s", name, strings.Join(names[:], ", "))
	case !slices.Contains(modes[:], mode):
		return "", fmt.Errorf("mode %q is none of %s", mode, strings.Join(modes[:], ", "))
	}
	return find(slices.Values(standardDirs[:]), mode, name, notWrapper)
}

// notWrapper fails for every wrapper, and for what cannot be read and so might be one.
func notWrapper(path string, _ unix.Stat_t) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	f.Close()
	if isWrapper(path) {
		return fmt.Errorf("%q: %w", path, ErrRecursion)
	}
	return nil
}

// find looks in first before the other directories.
func (w Wrapper) find(mode, name, first string) (string, error) {
	return find(w.dirs(first), mode, name, w.notItself)
}

func (w Wrapper) notItself(path string, file unix.Stat_t) error {
	if w.runs(path, file) {
		return fmt.Errorf("%q: %w", path, ErrRecursion)
	}
	return nil
}

func find(dirs iter.Seq[string], mode, name string, check func(path string, file unix.Stat_t) error) (string, error) {
	var unusable error // the first that is there and cannot be run
	for d := range dirs {
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
			default:
				if err := check(path, stat); err != nil {
					return "", err
				}
				return path, nil
			}
		}
	}
	if unusable != nil {
		return "", unusable
	}
	return "", fmt.Errorf("%w: %s, looked for in %s", ErrMissing, strings.Join(candidates(mode, name), " or "),
		strings.Join(slices.Collect(dirs), ", "))
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
	return modeOf(file) != "" || file == "xtables-multi" // before 1.8
}

// modeOf returns the mode whose program a file of this name is, "" if it is none.
func modeOf(file string) string {
	for _, mode := range modes {
		for _, name := range names {
			if slices.Contains(candidates(mode, name), file) {
				return mode
			}
		}
	}
	return ""
}
