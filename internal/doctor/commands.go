// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// errNotInPath means that a shell does not find a command that is there.
var errNotInPath = errors.New("PATH does not have its directory")

// command is one of the six.
type command struct {
	link.Command
	plan     plan.Plan // of a call
	way      []string  // its path, and those to which it leads by a symlink
	readOnly bool      // its directory is on a read-only file system
}

// directory is that of the switch that the command leads through, otherwise its own: there, install lays the switch.
func (c command) directory() string { return cmp.Or(c.Switch, filepath.Dir(c.Path)) }

// isAbsent reports whether nothing has the path.
func (c command) isAbsent() bool { return c.Missing && errors.Is(c.Err, os.ErrNotExist) }

// leads describes where a command leads: "/usr/sbin/iptables leads to /usr/sbin/xtables-nft-multi".
func (c command) leads() string {
	if c.ResolvesTo == "" || c.ResolvesTo == c.Path {
		return quoted(c.Path)
	}
	return quoted(c.Path) + " leads to " + quoted(c.ResolvesTo)
}

// isKnown reports whether doctor knows what a command runs: the wrapper, or a program of iptables.
func (c command) isKnown() bool { return c.Wrapper || c.Backend != "" }

func newCommand(path string, seen plan.Seen) command {
	c := command{Command: link.LookAt(path), way: file.Hops(path)}
	c.plan = seen.At(c.Command)
	c.readOnly = unix.Access(c.directory(), unix.W_OK) == unix.EROFS
	return c
}

// commandsInPath are the six commands as a shell finds them, otherwise beside iptables.
func commandsInPath(seen plan.Seen) (all []command) {
	beside := iptables.Dirs()[0]
	for _, name := range exec.Commands() {
		path, err := run.InPath(name)
		if err != nil {
			path = filepath.Join(beside, name)
			err = whyNot(path)
		}
		c := newCommand(path, seen)
		if err != nil && c.plan.Err == nil {
			c.plan = plan.Plan{Path: path, How: plan.Nothing, Err: err, Error: err.Error()}
		}
		all = append(all, c)
		beside = filepath.Dir(all[0].Path)
	}
	return all
}

// whyNot says why a shell does not run the file at a path that it does not find.
func whyNot(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &os.PathError{Op: "run", Path: path, Err: unix.EISDIR}
	case unix.Access(path, unix.X_OK) != nil:
		return &os.PathError{Op: "run", Path: path, Err: unix.EACCES}
	}
	return fmt.Errorf("%q: %w", path, errNotInPath)
}

// commandsElsewhere are those in the directories in which distributions install iptables, but PATH does not find: programs
// with another PATH, or a path of their own, run them.
func commandsElsewhere(seen plan.Seen, inPath []command) (all []command) {
	known := each(inPath, func(c command) string { return realPath(c.Path) })
	for _, dir := range iptables.Dirs() {
		for _, name := range exec.Commands() {
			path := filepath.Join(dir, name)
			if slices.Contains(known, realPath(path)) {
				continue
			}
			known = append(known, realPath(path))
			c := newCommand(path, seen)
			if !c.Missing {
				all = append(all, c)
			}
		}
	}
	return all
}

// realPath is the path without symlinks on the way to the last name.
func realPath(path string) string {
	dir, _ := filepath.EvalSymlinks(filepath.Dir(path)) // "" if there is none
	return filepath.Join(dir, filepath.Base(path))
}

// What may be true of a command.

// fails: a call of it fails. That one but iptables is not there is a fact: an image may well have no ip6tables.
func fails(_ *state, c command) bool {
	return c.plan.Err != nil && (c.Name == exec.Commands()[0] || !c.isAbsent())
}

// differs: it runs another backend than the host's, which is known.
func differs(s *state, c command) bool { return s.known() && c.plan.Backend == s.host.Backend.Other() }

// bypasses: it leads neither to the wrapper nor through its switch to a program. One that differs has its own finding.
func bypasses(s *state, c command) bool { return c.plan.How == plan.NotWrapped && !differs(s, c) }

// which are the commands of which something is true.
func (s *state) which(is func(*state, command) bool) (some []command) {
	for _, c := range s.commands {
		if is(s, c) {
			some = append(some, c)
		}
	}
	return some
}

// named is one of the six.
func (s *state) named(name string) command { return s.commands[slices.Index(exec.Commands(), name)] }

// pathsOf are the paths of commands.
func pathsOf(commands []command) []string {
	return each(commands, func(c command) string { return quoted(c.Path) })
}
