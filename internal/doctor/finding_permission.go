// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Whether this process may do what iptables needs.

const addCaps = "Add NET_ADMIN and NET_RAW to securityContext.capabilities of the container (docker run " +
	"--cap-add=NET_ADMIN --cap-add=NET_RAW)."

func (s *state) notPermitted() *Finding {
	const cannot = "iptables can neither list nor change rules: "
	const noNetAdmin = cannot + "CAP_NET_ADMIN is missing (bit 0x1000 of CapEff)."
	found := Finding{Severity: problem, Look: []string{"grep -e CapEff /proc/self/status"}, Do: addCaps}
	refusal := s.refusal()
	said := s.said(notPermitted)
	switch {
	case !s.process.netAdmin && s.process.user == 0:
		found.Text = noNetAdmin
	case !s.process.netAdmin:
		found.Text = fmt.Sprintf(noNetAdmin+" This is user %d, and Kubernetes gives added capabilities only to root.",
			s.process.user)
		found.Look = []string{"grep -e Uid -e CapEff -e NoNewPrivs /proc/self/status"}
		found.Do = "In the Pod's spec, run the container as root (runAsUser: 0) and add NET_ADMIN and NET_RAW. For " +
			"another user, the image must give file capabilities to iptables' programs and to the wrapper. They have " +
			"no effect if NoNewPrivs is 1 (allowPrivilegeEscalation: false)."
	case refusal != nil && s.process.userNamespace:
		found.Text = cannot + "this process is in a user namespace (hostUsers: false, rootless), and its network " +
			"belongs to another one, where its CAP_NET_ADMIN does not count."
		found.Look = []string{"cat /proc/self/uid_map"}
		found.Do = "If the rules are for the node, run the container without a user namespace: " +
			"no hostUsers: false, no rootless Docker or Podman. Otherwise give the container a network of its own."
	case refusal != nil:
		found.Text = cannot + "CAP_NET_ADMIN is there, but the kernel refuses to answer (" +
			firstLine(refusal.Error()) + "). Something forbids it: usually a seccomp profile, SELinux or AppArmor, " +
			"or a sandbox such as gVisor."
		found.Look = []string{"grep -e CapEff -e Seccomp /proc/self/status"}
		found.Do = "If Seccomp is 2, use a seccompProfile that permits netlink sockets and getsockopt, as " +
			"RuntimeDefault does. With SELinux or AppArmor, look at the node's audit log."
	case s.wanted() == detect.Legacy && !s.process.netRaw:
		found.Text = "Every call of iptables-legacy fails: CAP_NET_RAW is missing (bit 0x2000 of CapEff)."
	case said != nil:
		found.Text = "iptables fails here, though CAP_NET_ADMIN is there. " + said.quote()
		found.Look = []string{said.Command}
		found.Do = "Look at the node's audit log for what SELinux or AppArmor forbids."
	default:
		return nil
	}
	return &found
}

// refusal is the error by which the kernel refuses what the wanted backend needs, nil if it does not. That the other
// backend is refused keeps nothing from working.
func (s *state) refusal() error {
	b := s.wanted()
	err := s.host.Evidence.Of(b).Err
	if !isRefusal(err) || b == detect.Legacy && s.mayLackFile(err) {
		return nil
	}
	return err
}

// mayLackFile reports whether an error may only mean that this user must not read a file of /proc.
func (s *state) mayLackFile(err error) bool {
	return s.process.user != 0 && errors.Is(err, unix.EACCES)
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

// isBlocked reports that the wanted backend cannot be used at all.
func (s *state) isBlocked() bool { return !s.process.netAdmin || s.refusal() != nil }

// said is a command that printed a message of a code and failed, nil if none did.
func (s *state) said(code string) *save {
	for _, out := range s.saves {
		got, _ := out.message()
		if got == code && out.Err != nil {
			return &out
		}
	}
	return nil
}

// quote is a sentence with the message that the command printed.
func (s save) quote() string {
	_, line := s.message()
	return quote(s.Command, line)
}

// process is what this process may do.
type process struct {
	user          int  // the effective one
	netAdmin      bool // CAP_NET_ADMIN, which both backends need to list rules, too
	netRaw        bool // CAP_NET_RAW: legacy opens a raw socket
	sysModule     bool // it may load modules, as iptables-legacy does
	userNamespace bool // it is in a user namespace that does not map every user to itself, or that is not known
}

// thisProcess asks for the capabilities that count.
func thisProcess() process {
	p := process{user: os.Geteuid(), userNamespace: !mapsAll()}
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_ = unix.Capget(&header, &data[0]) // fails for a wrong version only
	p.netAdmin = data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0
	p.netRaw = data[0].Effective&(1<<unix.CAP_NET_RAW) != 0
	p.sysModule = data[0].Effective&(1<<unix.CAP_SYS_MODULE) != 0 && !modulesLocked()
	return p
}

// mapsAll reports whether the user namespace maps every user to itself, as the first one does. See user_namespaces(7):
// a line has the first ID inside, the first outside, and how many.
func mapsAll() bool {
	ids, _ := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(ids))
	return len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295"
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
