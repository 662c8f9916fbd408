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
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// errNotInPath means that a shell does not find a command that is there.
var errNotInPath = errors.New("PATH does not have its directory")

// Command is one of the six: where it leads, and what a call runs.
type Command struct {
	look.Command
	Call plan.Plan `json:"call"`

	readOnly bool // its directory is on a read-only file system
}

// directory is that of the switch that the command leads through, otherwise its own: there, install lays the switch.
func (c Command) directory() string { return cmp.Or(c.Switch, filepath.Dir(c.Path)) }

// isAbsent reports whether nothing has the path.
func (c Command) isAbsent() bool { return c.Missing && errors.Is(c.Err, os.ErrNotExist) }

// String says where a command leads: "/usr/sbin/iptables leads to /usr/sbin/xtables-nft-multi".
func (c Command) String() string {
	if c.ResolvesTo == "" || c.ResolvesTo == c.Path {
		return quoted(c.Path)
	}
	return quoted(c.Path) + " leads to " + quoted(c.ResolvesTo)
}

// commandAt looks at the command at a path. notFound is why a shell does not find it.
func commandAt(path string, notFound error, seen plan.Seen) Command {
	c := Command{Command: look.At(path)}
	c.Call = c.Plan(seen)
	c.Call.Path = "" // that of the command
	c.readOnly = unix.Access(c.directory(), unix.W_OK) == unix.EROFS
	info, err := os.Stat(path)
	switch {
	case notFound == nil || c.Call.Err != nil:
	case err == nil && info.IsDir():
		c.Call = plan.Fails(&os.PathError{Op: "run", Path: path, Err: unix.EISDIR})
	case unix.Access(path, unix.X_OK) != nil:
		c.Call = plan.Fails(&os.PathError{Op: "execve", Path: path, Err: unix.EACCES})
	default:
		c.Call = plan.Fails(fmt.Errorf("%q: %w", path, errNotInPath))
	}
	return c
}

// commandsInPath are the six commands as a shell finds them, otherwise beside iptables.
func commandsInPath(seen plan.Seen) (all []Command) {
	for _, name := range exec.Commands() {
		path, notFound := run.InPath(name)
		if notFound != nil && len(all) > 0 {
			path = filepath.Join(filepath.Dir(all[0].Path), name)
		}
		all = append(all, commandAt(path, notFound, seen))
	}
	return all
}

// commandsElsewhere are those in the directories in which distributions install iptables, but PATH does not find: programs
// with another PATH, or a path of their own, run them. Of those in a directory that run the same, it has the first.
func commandsElsewhere(seen plan.Seen, inPath []Command) (all []Command) {
	known := each(inPath, func(c Command) string { return realPath(c.Path) })
	for _, dir := range iptables.Dirs() {
		for _, name := range exec.Commands() {
			path := realPath(filepath.Join(dir, name))
			c := commandAt(path, nil, seen)
			if !c.Missing && !slices.Contains(known, path) && !slices.Contains(known, filepath.Dir(path)+c.Call.Program) {
				all = append(all, c)
			}
			known = append(known, path, filepath.Dir(path)+c.Call.Program)
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
func fails(s *state, c Command) bool {
	return c.Call.Err != nil && (c.Path == s.commands[0].Path || !c.isAbsent())
}

// differs: it runs another backend than the host's, which is known.
func differs(s *state, c Command) bool { return s.known() && c.Call.Backend == s.host.Backend.Other() }

// bypasses: it leads neither to the wrapper nor through its switch to a program. One that differs has its own finding.
func bypasses(s *state, c Command) bool { return c.Call.How == plan.NotWrapped && !differs(s, c) }

// which are the commands of which something is true.
func (s *state) which(is func(*state, Command) bool) []Command {
	return filter(s.commands, func(c Command) bool { return is(s, c) })
}

// named is one of the six.
func (s *state) named(name string) Command { return s.commands[slices.Index(exec.Commands(), name)] }

// pathsOf are the paths of commands.
func pathsOf(commands []Command) []string {
	return each(commands, func(c Command) string { return quoted(c.Path) })
}

// way is a command's path, and those to which it leads by a symlink: at most five, because they may lead in a circle.
func (c Command) way() []string {
	const most = 5
	hops := each(file.Hops(c.Path), quoted)
	return hops[:min(len(hops), most)]
}
