// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// ErrCapabilities means that iptables' programs have file capabilities, see capabilities(7), and the wrapper has none.
// Without them it may not ask the kernel, and each call of a user other than root would guess. All is installed.
var ErrCapabilities = errors.New("it has no file capabilities, unlike iptables' own program")

// Setcap is the command that gives a file the capabilities that iptables needs.
const Setcap = "setcap cap_net_admin,cap_net_raw+ep"

// lackCapabilities returns an error if a program has file capabilities and the wrapper has none.
func (w work) lackCapabilities() error {
	wrapper := w.Join(layout.Wrapper)
	if hasCapabilities(wrapper) {
		return nil
	}
	for _, mode := range evidence.Modes() {
		program := w.program(mode)
		if program != "" && hasCapabilities(program) {
			return fmt.Errorf("%q: %w %q", wrapper, ErrCapabilities, program)
		}
	}
	return nil
}

func hasCapabilities(path string) bool {
	_, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil
}
