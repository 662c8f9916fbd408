// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Client returns the iptables that the container's process starts: the first in the PATH of process 1, if that is
// known to be of this container, or else in our own. It is "" if there is none.
func Client(n layout.Names) string { return InPath(n, "iptables") }

// InPath returns what the container's process starts by a name, as Client does for iptables.
func InPath(n layout.Names, name string) string {
	return firstIn(n.Tree, clientsPath(n.Container, "/proc/1/environ"), name)
}

// Process 1 may be another user's, who then decides how much /proc shows as its environment, see PR_SET_MM_MAP in
// prctl(2), and how long it takes to look up a directory of its PATH: with symlinks, a millisecond each.
const (
	maxEnvironment = 6 << 20 // the most that execve(2) takes
	maxDirs        = 256     // of PATH
)

// clientsPath returns the PATH of process 1, which has the environment in a file, or our own. It is ours too where that
// of process 1 is beyond the bounds.
func clientsPath(c memory.Container, environment string) string {
	ours := os.Getenv("PATH")
	if c.OwnRoot != detect.Yes {
		return ours
	}
	file, err := os.Open(environment)
	if err != nil { // as that of another user
		return ours
	}
	defer file.Close()
	environ, err := io.ReadAll(io.LimitReader(file, maxEnvironment+1))
	if err != nil || len(environ) > maxEnvironment {
		return ours
	}
	path := pathOf(environ, ours)
	if strings.Count(path, ":") >= maxDirs {
		return ours
	}
	return path
}

// pathOf returns the PATH in an environment as /proc/PID/environ has it, or another one if it has none.
func pathOf(environ []byte, otherwise string) string {
	path := otherwise
	for variable := range strings.SplitSeq(string(environ), "\x00") {
		value, found := strings.CutPrefix(variable, "PATH=")
		if found {
			path = value
		}
	}
	return path
}

// firstIn returns the first executable of a name in the absolute directories of a PATH; "" if there is none.
func firstIn(t tree.Tree, path, name string) string {
	for dir := range strings.SplitSeq(path, ":") {
		if !strings.HasPrefix(dir, "/") {
			continue
		}
		file := programs.Join(dir, name)
		st, err := t.Stat(file)
		if err == nil && tree.IsExecutable(st) {
			return file
		}
	}
	return ""
}

// Dir is the directory of the client. Where there is none, or it goes through the commands in the wrapper's own
// directory, it is that one.
func Dir(n layout.Names) (string, error) {
	own, err := n.Dir()
	client := Client(n)
	if client == "" || err == nil && passes(n, client, own) {
		return own, err
	}
	return programs.Dir(client), nil
}

// passes reports whether a path goes through a command in a directory, or through the switch there.
func passes(n layout.Names, path, dir string) bool {
	chain, _ := n.Tree.Follow(path)
	return slices.ContainsFunc(chain.Hops, func(hop string) bool {
		name := programs.Base(hop)
		return (programs.IsName(name) || name == layout.Switch) && n.Tree.SameFile(programs.Dir(hop), dir)
	})
}
