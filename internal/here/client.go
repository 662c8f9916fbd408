// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Client returns the iptables that the container's process starts: the first in the PATH of process 1, if that is known to be
// of this container, or else in our own. It is "" if there is none.
func Client(n layout.Names) string {
	path := os.Getenv("PATH")
	if n.Container.OwnRoot == detect.Yes {
		environ, _ := os.ReadFile("/proc/1/environ") // of another user: nothing
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			if value, found := strings.CutPrefix(variable, "PATH="); found {
				path = value
			}
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		file := programs.Join(dir, "iptables")
		if st, err := n.Tree.Stat(file); strings.HasPrefix(dir, "/") && err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0 {
			return file
		}
	}
	return ""
}

// Dir is the directory of the client. Where there is none, or it goes through the commands in the wrapper's own directory,
// it is that one.
func Dir(n layout.Names) (string, error) {
	own, err := n.Dir()
	client := Client(n)
	if client == "" {
		return own, err
	}
	c, _ := n.Tree.Follow(client)
	if err == nil && slices.ContainsFunc(c.Hops, func(hop string) bool {
		name := programs.Base(hop)
		return (programs.IsName(name) || name == layout.Switch) && n.Tree.SameFile(programs.Dir(hop), own)
	}) {
		return own, nil
	}
	return programs.Dir(client), nil
}
