// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"cmp"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Network is the network namespace of the calling thread.
type Network struct {
	Namespace  string        `json:"namespace"` // "net:[4026531840]", as in /proc/PID/ns/net
	Interfaces []string      `json:"interfaces"`
	Process1   detect.Answer `json:"process_1"` // process 1 is in it too
	Own        bool          `json:"own"`       // it looks like a container's own network, not the host's
}

// String is a clause such as "net:[4026532281] (lo, eth0), shared with process 1".
func (n Network) String() string {
	text := n.Namespace
	if len(n.Interfaces) > 0 {
		text += " (" + list(plainAll(n.Interfaces)) + ")"
	}
	switch n.Process1 {
	case detect.Yes:
		text += ", shared with process 1"
	case detect.No:
		text += ", not shared with process 1"
	}
	if n.Own {
		text += "; this looks like the Pod's own network, not the node's"
	}
	return text
}

// thisNetwork looks at the namespace of the calling thread. Where kubelet's chains are, it is the node's. A user
// namespace in which CAP_NET_ADMIN counts has made its network.
func thisNetwork(s *state) Network {
	name, _ := os.Readlink("/proc/thread-self/ns/net")
	names, own := interfaces()
	reason := s.host.Reason
	own = own || s.process.userNamespace && s.process.netAdmin && s.host.Evidence.NFT.Kernel == detect.Yes
	return Network{
		Namespace:  cmp.Or(name, "unknown"),
		Interfaces: names,
		Process1:   sharedWithProcess1(),
		Own:        own && reason != detect.KubeletHint && reason != detect.KubeletCanary,
	}
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

// interfaces lists the network interfaces, and says whether the namespace looks like a container's own.
func interfaces() (names []string, own bool) {
	reply, _ := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC) // what cannot be read is not listed
	messages, _ := syscall.ParseNetlinkMessage(reply)
	return listed(messages)
}

// listed are the interfaces that count. The namespace looks like a container's own if there is nothing but lo, or if
// the other end of eth0 is in another namespace: that is how CNI plugins, Docker and podman connect a container.
func listed(messages []syscall.NetlinkMessage) (names []string, own bool) {
	names = []string{}
	for _, m := range messages {
		d := parseDevice(m)
		if d.name != "" {
			names = append(names, d.name)
		}
		own = own || d.name == "eth0" && d.peerElsewhere
	}
	return names, own || len(names) == 1 && names[0] == "lo"
}

// device is what rtnetlink says of a network interface, see rtnetlink(7) and linux/if_link.h:
//
//	IFLA_IFNAME       char[]  the name
//	IFLA_LINK_NETNSID __s32   the namespace of the device below, or of the other end, if it is another
type device struct {
	name          string
	peerElsewhere bool
}

func parseDevice(m syscall.NetlinkMessage) device {
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
	return d
}
