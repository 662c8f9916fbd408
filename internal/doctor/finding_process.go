// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Whether this process may do what iptables needs.

func (o *observation) notPermitted() *Finding {
	const cannot = "iptables can neither list nor change rules: "
	const noNetAdmin = cannot + "CAP_NET_ADMIN is missing (bit 0x1000 of CapEff)."
	found := Finding{Severity: problem, Look: []string{"grep -e CapEff /proc/self/status"}, Do: addCaps}
	refusal := o.refusal()
	switch {
	case !o.process.netAdmin && o.process.user == 0:
		found.Text = noNetAdmin
	case !o.process.netAdmin:
		found.Text = fmt.Sprintf(noNetAdmin+" This is user %d, and Kubernetes gives added capabilities only to root.",
			o.process.user)
		found.Look = []string{"grep -e Uid -e CapEff -e NoNewPrivs /proc/self/status"}
		found.Do = "In the Pod's spec, run the container as root (runAsUser: 0) and add NET_ADMIN and NET_RAW. For " +
			"another user, the image must give file capabilities to iptables' programs and to the wrapper."
		if o.process.noNewRights {
			found.Text += " File capabilities have no effect with allowPrivilegeEscalation: false."
			found.Do += " The Pod's spec must not set allowPrivilegeEscalation: false then."
		}
	case refusal != nil && o.process.userNamespace:
		found.Text = cannot + "this process is in a user namespace (hostUsers: false, rootless), and its network " +
			"belongs to another one, where its CAP_NET_ADMIN does not count."
		found.Look = []string{"cat /proc/self/uid_map"}
		found.Do = "If the rules are for the node, run the container without a user namespace: " +
			"no hostUsers: false, no " +
			"rootless Docker or Podman. Otherwise give the container a network of its own."
	case refusal != nil:
		found.Text = cannot + "CAP_NET_ADMIN is there, but the kernel refuses to answer (" + firstLine(refusal) +
			"). Something forbids it: usually a seccomp profile, SELinux or AppArmor, or a sandbox such as gVisor."
		found.Look = []string{"grep -e CapEff -e Seccomp /proc/self/status"}
		found.Do = "If Seccomp is 2, use a seccompProfile that permits netlink sockets and getsockopt, as " +
			"RuntimeDefault does. With SELinux or AppArmor, look at the node's audit log."
	case o.wanted() == detect.Legacy && !o.process.netRaw:
		found.Text = "Every call of iptables-legacy fails: CAP_NET_RAW is missing (bit 0x2000 of CapEff)."
	default:
		return o.said(notPermitted).finding()
	}
	return &found
}

// refusal is the error by which the kernel refuses what needs the capability, nil if it does not. A user other than
// root may also lack the right to read a file of /proc, which is EACCES, too.
func (o *observation) refusal() error {
	for _, b := range detect.Backends() {
		err := o.Host.Evidence.Of(b).Err
		for _, errno := range []error{unix.EPERM, unix.EAFNOSUPPORT, unix.ENOSYS} {
			if errors.Is(err, errno) {
				return err
			}
		}
		if errors.Is(err, unix.EACCES) && o.process.user == 0 {
			return err
		}
	}
	return nil
}

// blocked reports that nothing can be asked, so that nothing else can be said.
func (o *observation) blocked() bool { return !o.process.netAdmin || o.refusal() != nil }
