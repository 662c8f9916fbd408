// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// netAdminRaw is what setcap(8) stores for cap_net_admin,cap_net_raw=ep.
const netAdminRaw = "\x01\x00\x00\x02\x00\x30\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// What is missing is a remark, so that an image can be built. After setcap there is none, and the wrapper's file keeps
// what it was given.
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
	remarked := func() bool {
		t.Helper()
		_, remarks := installs(t, directory, false)
		leadTo(t, directory, "iptables-wrapper")
		return slices.ContainsFunc(remarks, func(remark string) bool {
			return strings.HasSuffix(remark, "setcap cap_net_admin,cap_net_raw+ep "+directory+"/iptables-wrapper")
		})
	}
	for range 2 {
		if !remarked() {
			t.Error("no remark")
		}
	}
	give("iptables-wrapper")
	if remarked() {
		t.Error("a remark after setcap")
	}
	changesNothing(t, directory)
}
