// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The capabilities that iptables needs. Both backends need the first to list rules, too; legacy opens a raw socket.
const (
	netAdmin = "CAP_NET_ADMIN"
	netRaw   = "CAP_NET_RAW"
)

// process is what this process may do.
type process struct {
	user          int // the effective one
	netAdmin      bool
	netRaw        bool
	sysModule     bool // it may load modules, as iptables-legacy does
	noNewRights   bool // no_new_privs: file capabilities have no effect
	userNamespace bool // it is in a user namespace that does not map every user to itself, or that is not known
}

// thisProcess reads /proc/self/status, see proc(5). What cannot be read is as if it did not apply.
func thisProcess() process {
	p := process{user: os.Geteuid(), userNamespace: !mapsAll()}
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_ = unix.Capget(&header, &data[0]) // fails for a wrong version only
	p.netAdmin = data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0
	p.netRaw = data[0].Effective&(1<<unix.CAP_NET_RAW) != 0
	p.sysModule = data[0].Effective&(1<<unix.CAP_SYS_MODULE) != 0 && !modulesLocked()
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		value, found := strings.CutPrefix(line, "NoNewPrivs:")
		if found {
			p.noNewRights = strings.TrimSpace(value) != "0"
		}
	}
	return p
}

// mapsAll reports whether the user namespace maps every user to itself, as the first one does. See user_namespaces(7):
// a line has the first ID inside, the first outside, and how many.
func mapsAll() bool {
	ids, _ := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(ids))
	return len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295"
}

// capabilities lists those that iptables needs and this process has.
func (p process) capabilities() []string {
	has := []string{}
	if p.netAdmin {
		has = append(has, netAdmin)
	}
	if p.netRaw {
		has = append(has, netRaw)
	}
	return has
}

// modulesLocked reports whether the kernel loads no module any more.
func modulesLocked() bool {
	disabled, _ := os.ReadFile("/proc/sys/kernel/modules_disabled")
	return strings.TrimSpace(string(disabled)) == "1"
}

// kernelRelease is that of the running kernel.
func kernelRelease() string {
	var name unix.Utsname
	_ = unix.Uname(&name) // fails for a wrong address only
	return unix.ByteSliceToString(name.Release[:])
}
