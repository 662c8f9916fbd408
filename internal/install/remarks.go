// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// Setcap is the command that gives a file the capabilities that iptables needs.
const Setcap = "setcap cap_net_admin,cap_net_raw+ep"

// remarks adds what the user should know although the wrapper works. Doctor tells the rest, such as what bypasses the
// wrapper, and versions that are too old: install starts no program of iptables.
func (w work) remarks() {
	withCapabilities := ""
	for _, b := range detect.Backends() {
		program, err := exec.Find(b, "iptables", w.Path())
		switch {
		case errors.Is(err, exec.ErrMissing):
			w.done.remark("there is no iptables for %s here: on a host that uses %s, the commands end with status 127",
				b, b)
		case err != nil:
			w.done.remark("on a host that uses %s, the commands end with status 126: %v", b, err)
		case hasCapabilities(program.Path):
			withCapabilities = program.Path
		}
	}
	wrapper := w.Join(link.Wrapper)
	if withCapabilities != "" && !hasCapabilities(wrapper) {
		// Without them it may not ask the kernel, and each call of a user other than root would guess.
		w.done.remark("%q has file capabilities and the wrapper has none: %s %s", withCapabilities, Setcap, wrapper)
	}
}

// hasCapabilities reports whether a file has capabilities, see capabilities(7).
func hasCapabilities(path string) bool {
	_, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil
}
