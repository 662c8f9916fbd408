// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Calls pass over programs in a directory that others can write, so install says so, forced or not, and not that there
// is no iptables.
func TestProgramsInExposedDirectory(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Check(t, os.Chmod("/usr/sbin", 0o775))
	for _, directory := range []string{"", "/usr/sbin"} {
		for _, force := range []bool{false, true} {
			done, err := Install(os.Args[0], directory, force)
			if !errors.Is(err, file.ErrExposed) || done.Lines != nil {
				t.Errorf("%q, forced %v: got %v, %q", directory, force, err, done.Lines)
			}
		}
	}
}
