// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

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
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// How says what decides which program "iptables" is here.
type How string

// What a name can resolve to.
const (
	Switch     How = "switch"          // an earlier call or select stored the mode
	Remembered How = "remembered"      // the wrapper, which follows this container's memory
	Variable   How = "variable"        // the wrapper, which follows IPTABLES_WRAPPER_MODE
	EachCall   How = "each call"       // the wrapper, which detects the mode at each call
	NotWrapped How = "not the wrapper" // an iptables program, not through the switch, or something else
	Missing    How = "missing"         // nothing
)

// Here is what the command "iptables" runs in this container.
type Here struct {
	Backend detect.Mode `json:"backend,omitempty"` // none if it is not an iptables program
	Program string      `json:"program,omitempty"`
	How     How         `json:"how"`
	Differs bool        `json:"differs"` // the host is known to use the other backend
	Error   string      `json:"error,omitempty"`
}

// String is Here in one clause: "nft (/usr/sbin/xtables-nft-multi)".
func (h Here) String() string {
	if h.How == Missing {
		return "missing"
	}
	why := map[How]string{Remembered: ", remembered", Variable: ", by " + programs.ModeVariable, EachCall: ", detected at each call"}
	return fmt.Sprintf("%s (%s%s)", cmp.Or(h.Backend, "unknown"), cmp.Or(h.Program, "no such program"), why[h.How])
}

// Look returns what iptables in the directory runs: through the links, or through the wrapper, which decides by the
// variable, the memory and the host. If host is only what the variable says, the host is asked again.
func Look(w links.Wrapper, dir string, variable, remembered detect.Mode, host detect.Result) Here {
	if host.Reason == detect.Override {
		host = detect.Host()
	}
	s := w.Look(dir)[0] // iptables
	h := Here{Backend: s.Mode, Program: s.ResolvesTo, How: NotWrapped, Error: s.Error}
	switch {
	case s.Error != "":
		h.How = Missing
	case s.Switched && s.Mode != "":
		h.How = Switch
	case !s.Wrapper:
	case variable != "":
		h.Backend, h.How = variable, Variable
	case remembered != "" && !byKubelet(host):
		h.Backend, h.How = remembered, Remembered
	default:
		h.Backend, h.How = host.Mode, EachCall
	}
	if s.Wrapper && h.How != Switch {
		var err error
		h.Program, err = w.FindIn(dir, h.Backend, "iptables")
		h.Error = errorText(err)
	}
	h.Differs = host.Conclusive && h.Backend != "" && h.Backend != host.Mode
	return h
}

func byKubelet(r detect.Result) bool {
	return r.Reason == detect.KubeletHint || r.Reason == detect.KubeletCanary
}

// Installed is the only backend whose programs are in the directory, or are found from there; "" if both or neither are.
func Installed(w links.Wrapper, dir string) detect.Mode {
	_, _, only := w.FindBoth(dir, "iptables")
	return only
}

// RememberedIn is the backend that the container remembers, as a call of iptables in the directory would follow it: "" if the
// backend's program is missing there.
func RememberedIn(w links.Wrapper, dir string) detect.Mode {
	mode := w.Memory(w.Container()).Mode()
	if _, err := w.FindIn(dir, mode, "iptables"); mode == "" || errors.Is(err, programs.ErrMissing) {
		return ""
	}
	return mode
}

// Ask answers the query about the host. What this container remembers is not evidence about the host, and neither are
// rules that it wrote itself: if the rule count agrees with the memory, or nothing is proven, the answer is the
// memory's, and not conclusive.
func Ask(q detect.Query, remembered detect.Mode) detect.Result {
	r := q.Run()
	if remembered != "" && !byKubelet(r) && !(r.Conclusive && r.Mode != remembered) {
		r.Mode, r.Reason, r.Conclusive = remembered, detect.Remembered, false
	}
	return r
}

// Check is the question of a liveness probe: does iptables here run the host's backend? It asks only what it needs. An
// error says that both are known and differ, or that iptables cannot be run at all; a new container may cure these.
func Check(w links.Wrapper, dir string, variable detect.Mode) (line string, err error) {
	remembered := RememberedIn(w, dir)
	host := Ask(detect.Query{Installed: Installed(w, dir)}, remembered)
	switch h := Look(w, dir, variable, remembered, host); {
	case h.Error != "":
		return "", fmt.Errorf("iptables cannot be run here: %s", h.Error)
	case h.Differs:
		return "", fmt.Errorf("iptables in this container is %s, but the host uses %s", h, host)
	case h.Backend == "":
		return "", fmt.Errorf("iptables in this container is %q, which is not iptables", h.Program)
	case !host.Conclusive:
		return fmt.Sprintf("iptables in this container is %s; the host's backend is not certain: %s", h, host.Uncertainty()), nil
	default:
		line = fmt.Sprintf("iptables in this container is %s, and the host uses %s", h, host)
		// No error: nobody may run that path, and it is the same in a new container.
		for _, path := range bypasses(w, dir, host) {
			line += "; but " + path + " runs another backend"
		}
		return line, nil
	}
}

// bypasses are the paths in other directories that run the backend which the host is known not to use.
func bypasses(w links.Wrapper, dir string, host detect.Result) []string {
	return slices.DeleteFunc(install.Others(w, dir), func(path string) bool {
		c, err := w.Follow(path)
		return err != nil || !host.Conclusive || c.Mode() == "" || c.Mode() == host.Mode
	})
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
	const most = 6
	names := n.Interfaces
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	whose := map[detect.Answer]string{detect.Yes: ", also process 1's", detect.No: ", not process 1's"}
	text := n.Namespace + " (" + strings.Join(names, ", ") + ")" + whose[n.Process1]
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
	reply, _ := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC) // what cannot be read is not listed
	messages, _ := syscall.ParseNetlinkMessage(reply)
	for _, m := range messages {
		attributes, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil { // the end of the list
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
