// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A command that is iptables' own program, or through which the program is found, is not replaced, forced or not: what
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
			if !errors.Is(err, remedy.ErrOwnProgram) || changes != nil {
				t.Errorf("%s, forced %v: got %v, %q", doc, force, err, changes)
			}
		}
		if after := state(t, directory); after != before {
			t.Errorf("%s: got %s\nwant %s", doc, after, before)
		}
	}
}
