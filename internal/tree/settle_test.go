// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "testing"

// settles checks that Settle agrees with Exposed about a path, and that a path that leads nowhere is an error.
func settles(t *testing.T, tree Tree, path, want string) {
	t.Helper()
	there, missing := tree.Stat(path)
	end, exposed, err := tree.Settle(path)
	switch {
	case missing != nil:
		if exposed == "" && err == nil {
			t.Errorf("Settle: got %q for what does not exist", end)
		}
	case exposed != want || err != nil:
		t.Errorf("Settle: got %q and %v, want %q", exposed, err, want)
	case want == "":
		st, err := tree.Lstat(end)
		if err != nil || IDOf(st) != IDOf(there) || IsLink(st) {
			t.Errorf("Settle: %q leads to %q, which is another file: %v", path, end, err)
		}
	}
}

// A path that goes up, or ends in links of links, ends where the kernel says.
func TestSettle(t *testing.T) {
	tree, _ := image(t)
	for _, path := range []string{"/", "/usr/sbin/../sbin/file", "/../usr", "/absolute/../sbin", "/chain"} {
		settles(t, tree, path, "")
	}
}
