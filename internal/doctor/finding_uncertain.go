// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// Whether the host's backend is known.

func (o *observation) uncertain() *Finding {
	found := Finding{Severity: warning, Look: []string{showEvidence}}
	e := o.Host.Evidence
	err := errors.Join(e.NFT.Err, e.Legacy.Err)
	chosen := o.Here.How == here.Variable || o.Here.How == here.Stored
	const choose = "If you know the backend of the host's own programs (on the node, iptables --version shows it), " +
		"set " +
		call.Variable + " to it in the Pod's spec, or run iptables-wrapper select nft or legacy in the entry point."
	switch {
	case len(o.refused) > 0:
		found.Text = "What iptables here runs is not known. Users other than root could replace it, so doctor did " +
			"not start it: " + list(o.refused) + "."
		found.Look = []string{"ls -ld " + filepath.Dir(o.Here.Path)}
		found.Do = "Let only root write to iptables, to its directory, and to each link on the way."
	case o.blocked(), o.known(), o.found(kernel):
		return nil
	case errors.Is(err, unix.EACCES):
		found.Text = "iptables here may run the wrong backend: this user cannot read which tables legacy has (" +
			firstLine(err) + ")."
		found.Do = "In the Pod's spec, run the container as root or with group 0 (runAsGroup: 0). " + choose
	case o.split():
		found.Text = "iptables here may run the wrong backend: IPv4 and IPv6 differ. " + o.named() + "."
		found.Do = "On the node, have iptables and ip6tables use the same backend (--version shows it), then drain " +
			"the node and reboot it: that removes the names in the other one."
	case o.both():
		found.Text = "iptables here may run the wrong backend: both backends have names of the host's programs, and " +
			string(o.Host.Backend) + " is a guess. " + o.named() + "."
		found.Do = "If the node has changed its backend, drain it and reboot it: then only the names of what still " +
			"runs are there. " + choose
	case chosen && err == nil:
		return nil
	case o.Network.Own && e.NFT.Rules == 0 && e.Legacy.Rules == 0:
		found.Text = "Rules made here do not act on the node, and nothing here shows which backend it uses: this " +
			"looks like the Pod's own network (" + list(o.Network.Interfaces) + ")."
		found.Look = append(found.Look, "cat /proc/net/dev")
		found.Do = "If the rules are for the node, set hostNetwork: true in the Pod's spec (docker run --network " +
			"host). If they are for the Pod, either backend will do, as long as all its containers use the same: set " +
			call.Variable + " in each."
	default:
		found.Text = "iptables here may run the wrong backend. Nothing proves which one the host uses: " +
			o.Host.Because + "."
		found.Do = "If a program of the host that makes rules, such as kubelet, Docker or firewalld, starts later, " +
			"restart this container then. " + choose
	}
	return &found
}

// both reports whether both backends have names.
func (o *observation) both() bool {
	e := o.Host.Evidence
	return len(e.NFT.Names) > 0 && len(e.Legacy.Names) > 0
}

// split reports whether the names of one backend are all of IPv4, and those of the other one all of IPv6.
func (o *observation) split() bool {
	if !o.both() {
		return false
	}
	seen := map[detect.Backend]map[detect.Family]bool{detect.NFT: {}, detect.Legacy: {}}
	for _, b := range detect.Backends() {
		for _, n := range o.Host.Evidence.Of(b).Names {
			seen[b][n.Family] = true
		}
	}
	nft, legacy := seen[detect.NFT], seen[detect.Legacy]
	return len(nft) == 1 && len(legacy) == 1 && nft[detect.IPv4] != legacy[detect.IPv4]
}

// named says which names each backend has.
func (o *observation) named() string {
	text := ""
	for _, b := range detect.Backends() {
		var names []string
		for _, n := range o.Host.Evidence.Of(b).Names {
			name := n.Chain + " (" + n.Family.String() + ")"
			if n.Chain == "" {
				name = "table " + n.Table
			}
			names = append(names, name)
		}
		if text != "" {
			text += "; "
		}
		text += string(b) + " has " + list(names)
	}
	return text
}
