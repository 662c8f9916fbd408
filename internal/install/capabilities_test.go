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

func TestCapabilityText(t *testing.T) {
	for _, test := range []struct{ doc, value, want string }{
		{"none", "", ""},
		{"cut short", netAdminRaw[:8], ""},
		{"version 2", netAdminRaw, "cap_net_admin,cap_net_raw=ep"},
		{"version 1", "\x01\x00\x00\x01" + netAdminRaw[4:12], "cap_net_admin,cap_net_raw=ep"},
		{"version 3: with the user of a namespace", "\x01\x00\x00\x03" + netAdminRaw[4:] + "\xe8\x03\x00\x00",
			"cap_net_admin,cap_net_raw=ep"},
		{"not effective, inheritable", "\x00\x00\x00\x02\x00\x10\x00\x00\x00\x10\x00\x00" + netAdminRaw[12:],
			"cap_net_admin=ip"},
		{"others, and two clauses", "\x01\x00\x00\x02\x01\x10\x00\x00\x00\x20\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00",
			"'0,cap_net_admin,39=ep cap_net_raw=ei'"},
	} {
		got := parseCapabilities([]byte(test.value)).String()
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.doc, got, test.want)
		}
	}
}

// Everything is installed, and then the line says what is missing. After that, install is content, and the wrapper's
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
	want := "setcap cap_net_admin,cap_net_raw=ep " + directory + "/iptables-wrapper"
	for range 2 {
		_, err := Install(directory, false)
		missing := &CapabilityError{}
		if !errors.As(err, &missing) || missing.Setcap != want {
			t.Fatalf("got %v, %q", err, missing.Setcap)
		}
		leadTo(t, directory, "iptables-wrapper")
	}
	give("iptables-wrapper")
	changesNothing(t, directory)
	changesNothing(t, directory)
}
