// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// Check is the question of a liveness probe: does iptables here run the host's backend? It asks only what it needs. An
// error says that both are known and differ, or that iptables cannot be run at all; a new container may cure these.
func Check(n layout.Names, dir string, variable detect.Mode) (line string, err error) {
	host := here.Ask(n, dir, detect.Query{})
	switch h := here.Look(n, dir, variable, host); {
	case h.Error != "":
		return "", fmt.Errorf("iptables cannot be run here: %s", h.Error)
	case h.Differs:
		return "", fmt.Errorf("iptables in this container is %s, but the host uses %s", h, here.Proven(host))
	case h.Backend == "":
		return "", fmt.Errorf("iptables in this container is %q, which is not iptables", h.Program)
	case !host.Conclusive:
		return fmt.Sprintf("iptables in this container is %s; the host's backend is not certain: %s", h, host.Uncertainty()), nil
	default:
		line = fmt.Sprintf("iptables in this container is %s, and the host uses %s", h, host)
		// No error: nobody may run that path, and it is the same in a new container.
		for _, path := range bypasses(n, dir, host) {
			line += "; but " + path + " runs another backend"
		}
		return line, nil
	}
}

// bypasses are the paths in other directories that run the backend which the host is known not to use.
func bypasses(n layout.Names, dir string, host detect.Result) []string {
	return slices.DeleteFunc(n.Others(dir), func(path string) bool {
		c, err := n.Tree.Follow(path)
		return err != nil || !host.Conclusive || c.Mode() == "" || c.Mode() == host.Mode
	})
}
