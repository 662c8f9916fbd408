// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Process is what this process may do.
type Process struct {
	User          int           `json:"user"`              // the effective one
	Missing       []string      `json:"missing,omitempty"` // of the capabilities that iptables needs
	UserNamespace detect.Answer `json:"user_namespace"`    // it is in one that does not map every user to itself

	netAdmin bool // CAP_NET_ADMIN, which both backends need to list rules, too
	netRaw   bool // CAP_NET_RAW: legacy opens a raw socket
	mayLoad  bool // it can load modules as iptables-legacy does
}

// String is a clause such as "user 0, without CAP_NET_RAW".
func (p Process) String() string {
	text := fmt.Sprintf("user %d", p.User)
	if len(p.Missing) > 0 {
		text += ", without " + list(p.Missing)
	}
	switch p.UserNamespace {
	case detect.Yes:
		text += ", in a user namespace"
	case detect.Unknown:
		text += "; whether it is in a user namespace is not known"
	}
	return text
}

// thisProcess asks for the capabilities that count.
func thisProcess() Process {
	p := Process{User: os.Geteuid(), UserNamespace: inUserNamespace()}
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_ = unix.Capget(&header, &data[0]) // fails for a wrong version only
	has := func(capability int) bool { return data[0].Effective&(1<<capability) != 0 }
	p.netAdmin, p.netRaw = has(unix.CAP_NET_ADMIN), has(unix.CAP_NET_RAW)
	p.mayLoad = has(unix.CAP_SYS_MODULE) && setting("modules_disabled") != "1" &&
		unix.Access(cmp.Or(setting("modprobe"), "/sbin/modprobe"), unix.X_OK) == nil
	if !p.netAdmin {
		p.Missing = append(p.Missing, "CAP_NET_ADMIN")
	}
	if !p.netRaw {
		p.Missing = append(p.Missing, "CAP_NET_RAW")
	}
	return p
}

// inUserNamespace reports whether the user namespace does not map every user to itself, as the first one does. See
// user_namespaces(7): a line has the first ID inside, the first outside, and how many.
func inUserNamespace() detect.Answer {
	ids, err := os.ReadFile("/proc/self/uid_map")
	switch {
	case err != nil:
		return detect.Unknown
	case strings.Join(strings.Fields(string(ids)), " ") == "0 0 4294967295":
		return detect.No
	}
	return detect.Yes
}

// setting is one of the kernel's, "" if it cannot be read.
func setting(name string) string {
	content, _ := os.ReadFile("/proc/sys/kernel/" + name)
	return strings.TrimSpace(string(content))
}

// isRefusal reports whether the kernel, or what guards it, refuses to answer.
func isRefusal(err error) bool {
	for _, errno := range []error{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EAFNOSUPPORT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// kernelRelease is that of the running kernel.
func kernelRelease() string {
	var name unix.Utsname
	_ = unix.Uname(&name) // fails for a wrong address only
	return unix.ByteSliceToString(name.Release[:])
}
