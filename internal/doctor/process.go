// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// What this process may do, and where it is.

const (
	netAdmin = "CAP_NET_ADMIN" // both backends need it, to list rules, too
	netRaw   = "CAP_NET_RAW"
)

// Process is what this process may do.
type Process struct {
	User          int           `json:"user"`              // the effective one
	Missing       []string      `json:"missing,omitempty"` // of the capabilities that iptables needs
	UserNamespace detect.Answer `json:"user_namespace"`    // it is in one that does not map every user to itself

	mayLoad bool // it can load modules as iptables-legacy does
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

// thisProcess asks for the capabilities that count. Of a user namespace, see user_namespaces(7): a line has the first ID
// inside, the first outside, and how many.
func thisProcess() Process {
	p := Process{User: os.Geteuid(), UserNamespace: detect.Yes}
	ids, err := os.ReadFile("/proc/self/uid_map")
	switch {
	case err != nil:
		p.UserNamespace = detect.Unknown
	case strings.Join(strings.Fields(string(ids)), " ") == "0 0 4294967295":
		p.UserNamespace = detect.No
	}
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_ = unix.Capget(&header, &data[0]) // fails for a wrong version only
	has := func(capability int) bool { return data[0].Effective&(1<<capability) != 0 }
	p.mayLoad = has(unix.CAP_SYS_MODULE) && setting("modules_disabled") != "1" &&
		unix.Access(cmp.Or(setting("modprobe"), "/sbin/modprobe"), unix.X_OK) == nil
	if !has(unix.CAP_NET_ADMIN) {
		p.Missing = append(p.Missing, netAdmin)
	}
	if !has(unix.CAP_NET_RAW) {
		p.Missing = append(p.Missing, netRaw)
	}
	return p
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

// Network is the network namespace of the calling thread.
type Network struct {
	Namespace  string        `json:"namespace"` // "net:[4026531840]", as in /proc/PID/ns/net
	Interfaces []string      `json:"interfaces"`
	Process1   detect.Answer `json:"process_1"` // process 1 is in it too
	Own        detect.Answer `json:"own"`       // it looks like a Pod's own, not the node's
}

// String is a clause such as "net:[4026532281] (lo, eth0), shared with process 1".
func (n Network) String() string {
	const room = 80
	text := n.Namespace + " (" + fit(room, ", ", each(n.Interfaces, plain)) + ")"
	switch n.Process1 {
	case detect.Yes:
		text += ", shared with process 1"
	case detect.No:
		text += ", not shared with process 1"
	}
	if n.Own == detect.Yes {
		text += ", looks like a Pod's own"
	}
	return text
}

// everywhere are the interfaces that a Pod's own network can have besides eth0: those that modules make everywhere.
var everywhere = []string{"lo", "eth0", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0",
	"ip6gre0"}

// thisNetwork looks at the namespace of the calling thread. Where kubelet's chains are, it is the node's.
func thisNetwork(host detect.Result) Network {
	name, _ := os.Readlink("/proc/thread-self/ns/net")
	n := Network{Namespace: cmp.Or(name, "not known"), Interfaces: []string{}, Process1: detect.Unknown, Own: detect.Unknown}
	devices, _ := os.ReadFile("/proc/thread-self/net/dev") // two lines of headings, then "  eth0: ..."
	for line := range strings.Lines(string(devices)) {
		name, _, isDevice := strings.Cut(strings.TrimSpace(line), ":")
		if isDevice {
			n.Interfaces = append(n.Interfaces, name)
		}
	}
	isNodes := func(name string) bool { return !slices.Contains(everywhere, name) }
	switch {
	case host.Reason == detect.KubeletHint, host.Reason == detect.KubeletCanary, slices.ContainsFunc(n.Interfaces, isNodes):
		n.Own = detect.No
	case len(n.Interfaces) > 0:
		n.Own = detect.Yes
	}
	// These files, unlike /proc/PID/ns, need no permission to trace process 1.
	ours, err := os.Stat("/proc/thread-self/net/dev")
	theirs, errTheirs := os.Stat("/proc/1/net/dev")
	if err == nil && errTheirs == nil {
		n.Process1 = detect.No
		if os.SameFile(ours, theirs) {
			n.Process1 = detect.Yes
		}
	}
	return n
}
