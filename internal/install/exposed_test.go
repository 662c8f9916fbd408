// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
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
			changes, _, err := Install(directory, force)
			if !errors.Is(err, file.ErrExposed) || changes != nil {
				t.Errorf("%q, forced %v: got %v, %q", directory, force, err, changes)
			}
		}
	}
}

// A name that is iptables' own program, or through which the program is found, is not replaced, forced or not: what
// install found before would be gone.
func TestOwnProgram(t *testing.T) {
	for doc, layout := range map[string]string{
		"the only program":  "rm xtables-legacy-multi; mv xtables-nft-multi iptables; ln -s iptables iptables-nft",
		"found through one": "ln -s xtables-nft-multi iptables; ln -s iptables iptables-nft",
	} {
		directory := image(t)
		host.Run(t, "sh", "-ec", "cd "+directory+"; rm -f iptables iptables-nft; "+layout)
		before := state(t, directory)
		for _, force := range []bool{false, true} {
			changes, _, err := Install(directory, force)
			if !errors.Is(err, exec.ErrItself) || changes != nil {
				t.Errorf("%s, forced %v: got %v, %q", doc, force, err, changes)
			}
		}
		if after := state(t, directory); after != before {
			t.Errorf("%s: got %s\nwant %s", doc, after, before)
		}
	}
}
