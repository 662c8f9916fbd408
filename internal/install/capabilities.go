// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// Setcap is the command that gives a file the capabilities that iptables needs.
const Setcap = "setcap cap_net_admin,cap_net_raw+ep"

// remarkCapabilities adds a remark if a program has file capabilities, see capabilities(7), and the wrapper has none.
// Without them, the wrapper cannot ask the kernel, and each call of a user other than root guesses.
func (w work) remarkCapabilities() {
	wrapper := w.Join(link.Wrapper)
	if hasCapabilities(wrapper) {
		return
	}
	for _, b := range detect.Backends() {
		program := w.program(b)
		if program != "" && hasCapabilities(program) {
			w.done.remark("%q has file capabilities and the wrapper has none: %s %s", program, Setcap, wrapper)
			return
		}
	}
}

func hasCapabilities(path string) bool {
	_, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil
}
