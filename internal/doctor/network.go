// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
)

// Network is the network namespace of the calling thread.
type Network struct {
	Namespace  string        `json:"namespace"` // "net:[4026531840]", as in /proc/PID/ns/net
	Interfaces []string      `json:"interfaces"`
	Process1   detect.Answer `json:"process_1"` // process 1 is in it too
	Own        bool          `json:"own"`       // looks like a container's own network, not the host's
}

// PodNetwork is what Network.Own says.
const PodNetwork = "this looks like the Pod's own network, not the node's"

// String is a clause such as "net:[4026532281] (lo, eth0), also process 1's".
func (n Network) String() string {
	const most = 6
	names := n.Interfaces
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	text := n.Namespace + " (" + strings.Join(names, ", ") + ")"
	switch n.Process1 {
	case detect.Yes:
		text += ", also process 1's"
	case detect.No:
		text += ", not process 1's"
	}
	if n.Own {
		text += "; " + PodNetwork
	}
	return text
}

// ThisNetwork looks at the namespace of the calling thread. Where kubelet's chains are, it is the node's.
func ThisNetwork(w links.Wrapper, host detect.Result) Network {
	name, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		name = "unknown"
	}
	n := Network{Namespace: name, Process1: w.Container().OwnNetns}
	n.Interfaces, n.Own = interfaces()
	n.Own = n.Own && !slices.ContainsFunc(host.Evidence, func(e detect.Evidence) bool { return e.Hint == detect.Yes || e.Canary == detect.Yes })
	return n
}

// interfaces lists the network interfaces. The namespace looks like a container's own if there is nothing but lo, or if
// the other end of eth0 is in another namespace: that is how CNI plugins, Docker and podman connect a container. The
// fallback devices of tunnels (tunl0, sit0) are in every namespace and are not listed.
func interfaces() (names []string, own bool) {
	names = []string{}
	reply, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return names, false
	}
	messages, err := syscall.ParseNetlinkMessage(reply)
	if err != nil {
		return names, false
	}
	for _, m := range messages {
		attributes, err := syscall.ParseNetlinkRouteAttr(&m)
		if m.Header.Type != unix.RTM_NEWLINK || err != nil {
			continue
		}
		var name string
		var peerElsewhere, fallback bool
		for _, a := range attributes {
			switch a.Attr.Type {
			case unix.IFLA_IFNAME:
				name = string(bytes.TrimRight(a.Value, "\x00"))
			case unix.IFLA_LINK_NETNSID:
				peerElsewhere = true
			case unix.IFLA_LINK:
				fallback = bytes.Equal(a.Value, make([]byte, 4))
			}
		}
		if fallback && !peerElsewhere {
			continue
		}
		names = append(names, name)
		own = own || name == "eth0" && peerElsewhere
	}
	return names, own || len(names) == 1 && names[0] == "lo"
}
