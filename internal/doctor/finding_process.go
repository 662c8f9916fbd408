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
	const look = "grep -e Cap -e NoNewPrivs -e Seccomp /proc/self/status"
	const cannot = "iptables can neither list nor change rules: "
	found := Finding{Severity: problem, Look: []string{look}, Do: addCaps}
	refusal := o.refusal()
	switch {
	case !o.process.netAdmin && o.process.user == 0:
		found.Text = cannot + "CAP_NET_ADMIN is missing."
	case !o.process.netAdmin:
		found.Text = fmt.Sprintf(cannot+"CAP_NET_ADMIN is missing. This is user %d, and Kubernetes gives added "+
			"capabilities only to root.", o.process.user)
		if o.process.noNewRights {
			found.Text += " File capabilities have no effect with allowPrivilegeEscalation: false."
		}
		found.Do = "Run the container as root with NET_ADMIN and NET_RAW. For another user, give the image's " +
			"programs and the wrapper file capabilities, and leave allowPrivilegeEscalation at true."
	case refusal != nil && o.process.userNamespace:
		found.Text = cannot + "CAP_NET_ADMIN does not count, because this process is in a user namespace (hostUsers: " +
			"false, rootless), and its network belongs to another one."
		found.Look = []string{"cat /proc/self/uid_map"}
		found.Do = "Run the container without a user namespace, or give it a network of its own."
	case refusal != nil:
		found.Text = cannot + "CAP_NET_ADMIN is there, and yet the kernel refuses to answer (" + firstLine(refusal) +
			"). A seccomp profile or a security module (SELinux, AppArmor) forbids it."
		found.Do = "Use a seccompProfile that permits netlink sockets and getsockopt, as RuntimeDefault does. With " +
			"SELinux or AppArmor, look at the node's audit log."
	case o.wanted() == detect.Legacy && !o.process.netRaw:
		found.Text = "Every call of iptables-legacy fails: CAP_NET_RAW is missing, and it opens a raw socket."
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
