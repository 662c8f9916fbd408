// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// netAdminRaw is what setcap(8) stores for cap_net_admin,cap_net_raw=ep.
const netAdminRaw = "\x01\x00\x00\x02\x00\x30\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// Everything is installed, and then the error says what is missing. After that, install is content, and the wrapper's
// file keeps what it was given.
func TestCapabilities(t *testing.T) {
	directory := image(t)
	give := func(file string) {
		t.Helper()
		err := unix.Setxattr(directory+"/"+file, "security.capability", []byte(netAdminRaw), 0)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) {
			host.Cannot(t, "give a file capabilities: %v; run it as root", err)
		}
		host.Check(t, err)
	}
	give("xtables-legacy-multi")
	for range 2 {
		_, err := Install(directory, false)
		if !errors.Is(err, ErrCapabilities) {
			t.Fatalf("got %v", err)
		}
		leadTo(t, directory, "iptables-wrapper")
	}
	give("iptables-wrapper")
	changesNothing(t, directory)
	changesNothing(t, directory)
}
