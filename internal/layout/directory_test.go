// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout_test

import (
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The directory that is meant is that of the switch through which its iptables leads.
func TestOpenDirectory(t *testing.T) {
	top := t.TempDir()
	here, there := top+"/here", top+"/there"
	host.Check(t, os.Mkdir(here, 0o755))
	host.Check(t, os.Mkdir(there, 0o755))
	for _, test := range []struct{ doc, iptables, want string }{
		{"a program", "xtables-nft-multi", here},
		{"its own switch", "iptables-current", here},
		{"its own switch, by another path", there + "/../here/iptables-current", here},
		{"another switch", there + "/iptables-current", there},
		{"a switch in no directory", top + "/gone/iptables-current", here},
	} {
		_ = os.Remove(here + "/iptables")
		host.Check(t, os.Symlink(test.iptables, here+"/iptables"))
		d, itself, err := layout.OpenDirectory(here)
		host.Check(t, err)
		if d.Path() != test.want || itself != (test.want == here) {
			t.Errorf("%s: got %q, itself %v", test.doc, d.Path(), itself)
		}
		d.Close()
	}
	t.Chdir(top)
	d, _, err := layout.OpenDirectory("there")
	host.Check(t, err)
	defer d.Close()
	if d.Path() != there {
		t.Errorf("a relative path: got %q", d.Path())
	}
	_, _, err = layout.OpenDirectory(top + "/gone")
	if !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}
