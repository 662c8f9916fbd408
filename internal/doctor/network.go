// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Network is the network namespace of the calling thread.
type Network struct {
	Namespace  string        `json:"namespace"` // "net:[4026531840]", as in /proc/PID/ns/net
	Interfaces []string      `json:"interfaces"`
	Process1   detect.Answer `json:"process_1"` // process 1 is in it too
	Own        detect.Answer `json:"own"`       // it looks like a Pod's own, not the node's
}

// String is a clause such as "net:[4026532281] (lo, eth0), shared with process 1".
func (n Network) String() string {
	text := n.Namespace
	if len(n.Interfaces) > 0 {
		const room = 80
		text += " (" + fit(room, ", ", each(n.Interfaces, plain)) + ")"
	}
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

// thisNetwork looks at the namespace of the calling thread. Where kubelet's chains are, it is the node's.
func thisNetwork(host detect.Result) Network {
	name, _ := os.Readlink("/proc/thread-self/ns/net")
	n := Network{Namespace: cmp.Or(name, "not known"), Interfaces: []string{}, Process1: sharedWithProcess1()}
	devices := devices()
	for _, d := range devices {
		n.Interfaces = append(n.Interfaces, d.name)
	}
	n.Own = isOwn(devices)
	if host.Reason == detect.KubeletHint || host.Reason == detect.KubeletCanary {
		n.Own = detect.No
	}
	return n
}

// sharedWithProcess1 reports whether process 1 is in the namespace of this thread. To compare files of /proc/PID/net
// needs no permission to trace process 1, as /proc/PID/ns does.
func sharedWithProcess1() detect.Answer {
	ours, err := os.Stat("/proc/thread-self/net/dev")
	if err != nil {
		return detect.Unknown
	}
	theirs, err := os.Stat("/proc/1/net/dev")
	switch {
	case err != nil:
		return detect.Unknown
	case os.SameFile(ours, theirs):
		return detect.Yes
	}
	return detect.No
}

// device is what rtnetlink says of a network interface, see rtnetlink(7) and linux/if_link.h:
//
//	IFLA_IFNAME       char[]  the name
//	IFLA_LINK_NETNSID __s32   the namespace of the device below, or of the other end, if it is another
type device struct {
	name          string
	peerElsewhere bool
}

// devices are the network interfaces, none if they cannot be read.
func devices() (all []device) {
	reply, _ := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	messages, _ := syscall.ParseNetlinkMessage(reply)
	for _, m := range messages {
		var d device
		attributes, _ := syscall.ParseNetlinkRouteAttr(&m) // none at the end of the list
		for _, a := range attributes {
			switch a.Attr.Type {
			case unix.IFLA_IFNAME:
				d.name = string(bytes.TrimRight(a.Value, "\x00"))
			case unix.IFLA_LINK_NETNSID:
				d.peerElsewhere = true
			}
		}
		if d.name != "" {
			all = append(all, d)
		}
	}
	return all
}

// everywhere are the interfaces that each namespace has: lo, and those that modules for tunnels make.
var everywhere = []string{"lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}

// isOwn reports whether a namespace looks like a Pod's own: it has eth0 and nothing else, or not even that, or the other
// end of eth0 is in another namespace.
func isOwn(all []device) detect.Answer {
	if len(all) == 0 {
		return detect.Unknown
	}
	isNode := func(d device) bool { return d.name != "eth0" && !slices.Contains(everywhere, d.name) }
	isPod := func(d device) bool { return d.name == "eth0" && d.peerElsewhere }
	if slices.ContainsFunc(all, isPod) || !slices.ContainsFunc(all, isNode) {
		return detect.Yes
	}
	return detect.No
}
