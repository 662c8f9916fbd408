// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// program implements a command in one backend.
type program struct {
	path string
	err  error // why there is none
}

// programs are those of both backends.
type programs map[evidence.Mode]program

var errItself = errors.New("it is the wrapper itself")

// find finds the programs of a command: beside the path by which it was called, beside the running file, and in the
// standard directories.
func find(place layout.Place, running dir.ID, name string) programs {
	var dirs []string
	beside := place.Beside()
	if beside != "" {
		dirs = append(dirs, beside)
	}
	linked, err := os.Readlink("/proc/self/exe")
	if err == nil {
		dirs = append(dirs, filepath.Dir(linked))
	}
	found := programs{}
	for _, mode := range evidence.Modes() {
		path, err := exec.Find(mode, name, dirs...)
		if err == nil {
			err = notItself(path, running)
		}
		found[mode] = program{path: path, err: err}
	}
	return found
}

// notItself refuses to run the wrapper in the place of a program: that would never end.
func notItself(path string, running dir.ID) error {
	id, err := dir.IDAt(path)
	if err == nil && id == running {
		return fmt.Errorf("%q: %w", path, errItself)
	}
	return nil
}

// missing reports whether there is no program for a backend. One that exists and cannot be executed is not missing.
func (p programs) missing(mode evidence.Mode) bool { return errors.Is(p[mode].err, exec.ErrMissing) }

// only returns the backend that alone has a program, "" if none or both have.
func (p programs) only() evidence.Mode {
	for _, mode := range evidence.Modes() {
		if p[mode].err == nil && p.missing(mode.Other()) {
			return mode
		}
	}
	return ""
}
