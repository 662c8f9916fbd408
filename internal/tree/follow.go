// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Chain is a path followed through symlinks.
type Chain struct {
	Hops []string    // the path, then each symlink's target; the last is the file
	End  string      // the last hop
	Stat unix.Stat_t // of the file
}

// Follow follows a path to the file that it resolves to. If that fails, the chain ends at the hop that cannot be looked
// at; it has no hops if that is the path itself.
func (t Tree) Follow(path string) (Chain, error) {
	c := Chain{End: path}
	for range maxLinks {
		st, err := t.Lstat(c.End)
		c.Stat = st
		if err != nil {
			return c, PathError("lstat", c.End, err)
		}
		c.Hops = append(c.Hops, c.End)
		if !IsLink(c.Stat) {
			return c, nil
		}
		target, err := t.Target(c.End)
		if err != nil {
			return c, PathError("readlink", c.End, err)
		}
		c.End = target
	}
	return c, PathError("follow", path, unix.ELOOP)
}

// Target returns the path that a symlink contains, as seen from where the path of the symlink is.
func (t Tree) Target(path string) (string, error) {
	target, err := t.Readlink(path)
	if err != nil {
		return "", err
	}
	return beside(path, target)
}

func beside(path, target string) (string, error) {
	switch {
	case target == "":
		return "", unix.ENOENT // as the kernel has it: symlink(2) makes no such link, but a FUSE server may show one
	case target[0] != '/':
		return programs.Join(programs.Dir(path), target), nil
	}
	return target, nil
}

// Found reports whether there is something at the path that was followed, even if only a broken symlink.
func (c Chain) Found() bool { return len(c.Hops) > 0 }

// IsProgram reports whether the chain leads to one of iptables' programs: it ends at one or passes one of their
// names, as where xtables-nft-multi is itself a symlink.
func (c Chain) IsProgram() bool {
	return slices.ContainsFunc(c.Hops, func(hop string) bool { return programs.IsProgram(programs.Base(hop)) })
}

// Mode returns the backend whose program the chain leads to, "" if it leads to none.
func (c Chain) Mode() detect.Mode {
	for _, hop := range c.Hops {
		if mode := programs.ModeOf(programs.Base(hop)); mode != "" {
			return mode
		}
	}
	return ""
}

// SameFile reports whether two paths are known to resolve to the same file.
func (t Tree) SameFile(a, b string) bool {
	if a == b {
		return true
	}
	stA, errA := t.Stat(a)
	stB, errB := t.Stat(b)
	return errA == nil && errB == nil && IDOf(stA) == IDOf(stB)
}

// SameEntry reports whether two paths are known to name the same entry of the same directory.
func (t Tree) SameEntry(a, b string) bool {
	return programs.Base(a) == programs.Base(b) && t.SameFile(programs.Dir(a), programs.Dir(b))
}

// ID identifies a file.
type ID struct{ dev, ino uint64 }

// IDOf returns the identity of a file of which stat(2) returned this.
func IDOf(st unix.Stat_t) ID { return ID{uint64(st.Dev), st.Ino} }

// IsNotExist reports whether an error says that a path does not exist.
func IsNotExist(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// IsWrapper reports whether a path resolves to a wrapper, perhaps another copy or version.
func (t Tree) IsWrapper(path string) bool {
	f, err := t.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return programs.HasMarker(f)
}

// Find returns the path of the first file, in the first directory that has one, that can be executed. The directories
// are asked for one by one, so that the usual first one costs no more than it must. isWrapper is told what stat(2)
// returned. The error wraps ErrMissing or ErrRecursion of package programs, or says why a file that exists cannot be
// executed.
func (t Tree) Find(
	dirs iter.Seq[string], files []string, isWrapper func(path string, st unix.Stat_t) (bool, error),
) (string, error) {
	var unusable error // the first that exists and cannot be executed
	for dir := range dirs {
		for _, file := range files {
			path := programs.Join(dir, file)
			st, err := t.Stat(path)
			if IsNotExist(err) {
				continue
			}
			if err == nil && !IsExecutable(st) {
				err = unix.EACCES
			}
			if err != nil {
				unusable = cmp.Or(unusable, PathError("execve", path, err))
				continue
			}
			wrapper, err := isWrapper(path, st)
			if err == nil && wrapper {
				err = fmt.Errorf("%q: %w", path, programs.ErrRecursion)
			}
			if err != nil {
				return "", err
			}
			return path, nil
		}
	}
	if unusable != nil {
		return "", unusable
	}
	var looked []string
	for dir := range dirs {
		looked = append(looked, Printable(dir))
	}
	wanted, in := strings.Join(files, " or "), cmp.Or(strings.Join(looked, ", "), "no directory")
	return "", fmt.Errorf("%w: %s, looked for in %s", programs.ErrMissing, wanted, in)
}
