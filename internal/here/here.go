// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package here says what the command iptables runs in this container, in which network, and why.
package here

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// What decides which program "iptables" is here.
const (
	Switch     = "switch"          // an earlier call or select stored the mode
	Remembered = "remembered"      // the wrapper, which follows this container's memory
	Variable   = "variable"        // the wrapper, which follows IPTABLES_WRAPPER_MODE
	EachCall   = "each call"       // the wrapper, which detects the mode at each call
	NotWrapped = "not the wrapper" // an iptables program, not through the switch, or something else
	Missing    = "missing"         // nothing
)

// Here is what the command "iptables" runs in this container.
type Here struct {
	Backend detect.Mode `json:"backend,omitempty"` // none if it is not an iptables program
	Program string      `json:"program,omitempty"`
	How     string      `json:"how"`
	Differs bool        `json:"differs"` // the host is known to use the other backend
	Error   string      `json:"error,omitempty"`
}

// String is Here in one clause: "nft (/usr/sbin/xtables-nft-multi)".
func (h Here) String() string {
	if h.How == Missing {
		return "missing"
	}
	why := map[string]string{Remembered: ", remembered", Variable: ", by " + programs.ModeVariable, EachCall: ", detected at each call"}
	return fmt.Sprintf("%s (%s%s)", cmp.Or(h.Backend, "unknown"), cmp.Or(h.Program, "no such program"), why[h.How])
}

// Look returns what iptables in the directory runs: through the links, or through the wrapper, which decides by the variable, the
// memory and the host, of which asked is what Ask has answered. host is what the host is known to use, whatever the variable says.
func Look(n layout.Names, dir string, q detect.Query, asked detect.Result) (h Here, host detect.Result) {
	s := n.Look(dir)[0] // iptables
	h = Here{Backend: s.Mode, Program: s.ResolvesTo, How: NotWrapped, Error: s.Error}
	switch {
	case s.Error != "":
		h.How = Missing
	case s.Switched && s.Mode != "":
		h.How = Switch
	case !s.Wrapper:
	case q.Override != "":
		h.Backend, h.How = q.Override, Variable
	case asked.Reason == detect.Remembered:
		h.Backend, h.How = asked.Mode, Remembered
	default:
		h.Backend, h.How = asked.Mode, EachCall
	}
	if s.Wrapper && h.How != Switch {
		program, err := n.Find(dir, h.Backend, "iptables")
		if h.Program = program; err != nil {
			h.Error = err.Error()
		}
	}
	if q.Override = ""; h.How == Variable { // which ignores the memory
		_, _, q.Installed = n.Self.FindBoth(n.Tree, programs.Join(dir, "iptables"), "iptables")
		asked = n.Memory().Answer(q)
	} else if asked.Reason == detect.Override {
		asked = Ask(n, dir, q)
	}
	if host = asked; host.Reason == detect.Remembered && !host.Conclusive {
		// The rules of a guess are on its own side. Only a count that is against it proves anything.
		if counted := (detect.Query{}).Run(); counted.Conclusive && counted.Mode != host.Mode {
			host = counted
			host.Evidence, host.Conflicts = asked.Evidence, asked.Conflicts
		}
	}
	h.Differs = host.Conclusive && h.Backend != "" && h.Backend != host.Mode
	return h, host
}

// Ask answers the query about the host, as a call of iptables in the directory would: with what the container remembers.
func Ask(n layout.Names, dir string, q detect.Query) detect.Result {
	_, _, q.Installed = n.Self.FindBoth(n.Tree, programs.Join(dir, "iptables"), "iptables")
	if q.Override == "" {
		q.Remembered = remembered(n, dir)
	}
	return n.Memory().Answer(q)
}

// remembered is what the container remembers, as a call of iptables in the directory would follow it: nothing if the
// backend's program is missing there. Where the switch has moved, it says more than a memory that contradicts it.
func remembered(n layout.Names, dir string) detect.Memory {
	r := n.Memory().Remembered()
	_, err := n.Find(dir, r.Mode, "iptables")
	if s := n.Look(dir)[0]; errors.Is(err, programs.ErrMissing) || s.Switched && s.Mode != "" && s.Mode != r.Mode {
		return detect.Memory{}
	}
	return r
}

// Client returns the iptables that the container's process starts: the first in the PATH of process 1, if that is known to be
// of this container, or else in our own. It is "" if there is none.
func Client(n layout.Names) string {
	path := os.Getenv("PATH")
	if n.Container.OwnRoot == detect.Yes {
		environ, _ := os.ReadFile("/proc/1/environ") // of another user: nothing
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			if value, found := strings.CutPrefix(variable, "PATH="); found {
				path = value
			}
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		file := programs.Join(dir, "iptables")
		if st, err := n.Tree.Stat(file); strings.HasPrefix(dir, "/") && err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0 {
			return file
		}
	}
	return ""
}

// Dir is the directory of the client. Where there is none, or it goes through the commands in the wrapper's own directory,
// it is that one.
func Dir(n layout.Names) (string, error) {
	own, err := n.Dir()
	client := Client(n)
	c, _ := n.Tree.Follow(client)
	if client == "" || err == nil && slices.ContainsFunc(c.Hops, func(hop string) bool {
		name := programs.Base(hop)
		return (programs.IsName(name) || name == layout.Switch) && n.Tree.SameFile(programs.Dir(hop), own)
	}) {
		return own, err
	}
	return programs.Dir(client), nil
}

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
	names := n.Interfaces
	if len(names) > 6 {
		names = append(slices.Clone(names[:6]), "...")
	}
	whose := map[detect.Answer]string{detect.Yes: ", also process 1's", detect.No: ", not process 1's"}
	text := n.Namespace + " (" + strings.Join(names, ", ") + ")" + whose[n.Process1]
	if n.Own {
		text += "; " + PodNetwork
	}
	return text
}

// ThisNetwork looks at the namespace of the calling thread. Where kubelet's chains are, it is the node's.
func ThisNetwork(c memory.Container, host detect.Result) Network {
	name, _ := os.Readlink("/proc/thread-self/ns/net")
	n := Network{Namespace: cmp.Or(name, "unknown"), Process1: c.OwnNetns}
	n.Interfaces, n.Own = interfaces()
	n.Own = n.Own && !slices.ContainsFunc(host.Evidence, func(e detect.Evidence) bool { return e.Hint == detect.Yes || e.Canary == detect.Yes })
	return n
}

// interfaces lists the network interfaces. The namespace looks like a container's own if there is nothing but lo, or if
// the other end of eth0 is in another namespace: that is how CNI plugins, Docker and podman connect a container. The
// fallback devices of tunnels (tunl0, sit0) are in every namespace and are not listed.
func interfaces() (names []string, own bool) {
	names = []string{}
	reply, _ := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC) // what cannot be read is not listed
	messages, _ := syscall.ParseNetlinkMessage(reply)
	for _, m := range messages {
		attributes, _ := syscall.ParseNetlinkRouteAttr(&m) // none at the end of the list
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
		if name != "" && (!fallback || peerElsewhere) {
			names = append(names, name)
			own = own || name == "eth0" && peerElsewhere
		}
	}
	return names, own || len(names) == 1 && names[0] == "lo"
}
