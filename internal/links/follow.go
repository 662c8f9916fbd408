// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"errors"
	"os"
	"slices"

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
	for range 40 { // MAXSYMLINKS
		var err error
		if c.Stat, err = t.Lstat(c.End); err != nil {
			return c, &os.PathError{Op: "lstat", Path: c.End, Err: err}
		}
		c.Hops = append(c.Hops, c.End)
		if c.Stat.Mode&unix.S_IFMT != unix.S_IFLNK {
			return c, nil
		}
		target, err := t.Readlink(c.End)
		if err != nil {
			return c, &os.PathError{Op: "readlink", Path: c.End, Err: err}
		}
		if target[0] != '/' {
			target = programs.Join(programs.Dir(c.End), target)
		}
		c.End = target
	}
	return c, &os.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
}

// IsProgram reports whether the chain points to one of iptables' programs: it ends at one or passes one of their names, as
// where xtables-nft-multi is itself a symlink.
func (c Chain) IsProgram() bool {
	return slices.ContainsFunc(c.Hops, func(hop string) bool { return programs.IsProgram(programs.Base(hop)) })
}

// Mode returns the backend whose program the chain points to, "" if it points to none.
func (c Chain) Mode() detect.Mode {
	for _, hop := range c.Hops {
		if mode := programs.ModeOf(programs.Base(hop)); mode != "" {
			return mode
		}
	}
	return ""
}

// switchHop returns the last switch that the chain passes, "" if it passes none.
func (c Chain) switchHop() string {
	for _, hop := range slices.Backward(c.Hops) {
		if programs.Base(hop) == Switch {
			return hop
		}
	}
	return ""
}

// AlternativesDir holds a symlink for each command that update-alternatives(1) manages.
const AlternativesDir = "/etc/alternatives"

// ownLink returns the index of the last link of a command's chain that is there for that command: it bears the command's
// name, in the directory of the chain's first hop, in a standard one, or in /etc/alternatives if a standard one leads there.
// It is the link to replace if the command is to lead elsewhere. Others, such as a link under the wrapper's own name, are
// there for something else.
func (t Tree) ownLink(c Chain) int {
	own := 0
	for i, hop := range c.Hops {
		dir := programs.Dir(hop)
		switch {
		case programs.Base(hop) != programs.Base(c.Hops[0]):
		case t.isOneOf(dir, programs.StandardDirs()...), t.isOneOf(dir, programs.Dir(c.Hops[0])),
			t.isOneOf(dir, AlternativesDir) && t.isOneOf(programs.Dir(c.Hops[i-1]), programs.StandardDirs()...):
			own = i
		}
	}
	return own
}

func (t Tree) isOneOf(dir string, dirs ...string) bool {
	return slices.Contains(dirs, dir) || slices.ContainsFunc(dirs, func(d string) bool { return t.SameFile(d, dir) })
}

// namesDir returns the directory of the commands that the chain's first hop belongs to: that of its own link, or of the
// link that points to it in /etc/alternatives.
func (t Tree) namesDir(c Chain) string {
	i := t.ownLink(c)
	if i > 0 && t.isOneOf(programs.Dir(c.Hops[i]), AlternativesDir) {
		i--
	}
	return programs.Dir(c.Hops[i])
}

// SameFile reports whether two paths are known to resolve to the same file.
func (t Tree) SameFile(a, b string) bool {
	if a == b {
		return true
	}
	stA, errA := t.Stat(a)
	stB, errB := t.Stat(b)
	return errA == nil && errB == nil && idOf(stA) == idOf(stB)
}

type fileID struct{ dev, ino uint64 }

func idOf(st unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

// IsNotExist reports whether an error says that a path does not exist.
func IsNotExist(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// IsWrapper reports whether a path resolves to a wrapper, perhaps another copy or version.
func (t Tree) IsWrapper(path string) bool {
	f, err := t.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return programs.HasMarker(f)
}
