// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"strings"

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
	switch {
	case len(o.refused) > 0:
		found.Text = "Doctor did not start iptables, because others could replace it: " + list(o.refused) + ". " +
			"So doctor " +
			"does not know whether iptables works."
		found.Look = nil
		for _, why := range o.refused {
			found.Look = append(found.Look, "ls -ld "+pathIn(why))
		}
		found.Do = "Make iptables, its directory and each link on the way belong to root, and let nobody else write " +
			"to them. Then run doctor again."
	case o.blocked(), o.known(), o.found(kernel):
		return nil
	case errors.Is(err, unix.EACCES):
		found.Text = "iptables here may run the wrong backend: this user cannot read which tables legacy has (" +
			firstLine(err) + ")."
		found.Do = "In the Pod's spec, run the container as root or with group 0 (runAsGroup: 0). Or look " +
			"for yourself. " + o.choose()
	case o.split():
		found.Text = "iptables here may run the wrong backend: the host's IPv4 and IPv6 differ. " + o.named() + "."
		found.Do = "On the node, have iptables and ip6tables use the same backend (--version shows it). Then drain " +
			"the node and reboot it, which removes the chains in the other one."
	case o.both():
		found.Text = "iptables here may run the wrong backend: both backends have chains that only programs of the " +
			"host make. " + o.named() + "."
		found.Do = "If the node has changed its backend, drain it and reboot it: that removes what is left of the " +
			"old one. If two programs of the host use different backends, have them use the same. " +
			o.choose()
	case chosen && err == nil:
		return nil
	case o.Network.Own && e.NFT.Rules == 0 && e.Legacy.Rules == 0:
		found.Text = "This looks like a Pod's own network, not the node's (interfaces: " +
			list(o.Network.Interfaces) + "). " +
			"If it is, rules made here do not act on the node, and nothing here shows the node's backend."
		found.Look = append(found.Look, "cat /proc/net/dev")
		found.Do = "If the rules are for the node, set hostNetwork: true in the Pod's spec (docker run --network " +
			"host). If they are for the Pod, either backend works, but all its containers must use the same, " +
			"for example " +
			call.Variable + "=" + string(o.wanted()) + " in each."
	default:
		found.Text = "iptables here may run the wrong backend: nothing proves which one the host uses (" +
			o.Host.Because + "). A chain or table of kubelet, Docker, firewalld or the like would."
		found.Do = o.choose() + " If such a program starts later than this container, restart the container after it."
	}
	return &found
}

// choose is what an operator does who knows the host.
func (o *observation) choose() string {
	runs := o.wanted()
	return fmt.Sprintf("On the node, iptables --version shows the backend of the host's programs. "+
		"If that is %s, ignore "+
		"this. If it is %s, set %s=%s in the Pod's spec.", runs, runs.Other(), call.Variable, runs.Other())
}

// pathIn is what a text has between its first two quotation marks.
func pathIn(text string) string {
	_, text, _ = strings.Cut(text, `"`)
	text, _, _ = strings.Cut(text, `"`)
	return text
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
