// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// ErrItself means that the wrapper is in the place of a program.
var ErrItself = errors.New("it is the wrapper itself")

// Program implements a command in one backend.
type Program struct {
	Path string
	Err  error // why it cannot be run; it wraps exec.ErrMissing if there is none
}

// Programs implement one command in both backends.
type Programs map[evidence.Mode]Program

// FindPrograms finds the programs of a command in directories, which must be absolute, and then where exec.Find looks.
// The wrapper, which is the running file, is refused in the place of a program: that would never end.
func FindPrograms(command string, running dir.ID, dirs ...string) Programs {
	found := Programs{}
	for _, mode := range evidence.Modes() {
		path, err := exec.Find(mode, command, dirs...)
		if err == nil && running.IsAt(path) {
			err = fmt.Errorf("%q: %w", path, ErrItself)
		}
		found[mode] = Program{Path: path, Err: err}
	}
	return found
}

// missing reports whether there is no program for a backend. One that exists and cannot be executed is not missing.
func (p Programs) missing(mode evidence.Mode) bool { return errors.Is(p[mode].Err, exec.ErrMissing) }

// Only returns the backend that alone has a program, "" if neither or both have.
func (p Programs) Only() evidence.Mode {
	for _, mode := range evidence.Modes() {
		if p[mode].Err == nil && p.missing(mode.Other()) {
			return mode
		}
	}
	return ""
}
