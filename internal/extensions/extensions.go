// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package extensions finds out which matches and targets of iptables the running kernel has. It loads no module for
// that.
package extensions

import (
	"errors"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Extension is a match or a target of iptables.
type Extension struct {
	Name   string `json:"name"`
	Target bool   `json:"target"`
	module string
}

// Wanted is what kube-proxy, CNI plugins, Docker and meshes need.
//
//style:table
var Wanted = []Extension{
	{Name: "addrtype", module: "xt_addrtype"},
	{Name: "comment", module: "xt_comment"},
	{Name: "conntrack", module: "xt_conntrack"},
	{Name: "mark", module: "xt_mark"},
	{Name: "multiport", module: "xt_multiport"},
	{Name: "owner", module: "xt_owner"},
	{Name: "statistic", module: "xt_statistic"},
	{Name: "tcp", module: "xt_tcpudp"},
	{Name: "udp", module: "xt_tcpudp"},
	{Name: "CONNMARK", Target: true, module: "xt_connmark"},
	{Name: "DNAT", Target: true, module: "xt_nat"},
	{Name: "MARK", Target: true, module: "xt_mark"},
	{Name: "MASQUERADE", Target: true, module: "xt_MASQUERADE"}, // before 5.2, see Alias
	{Name: "REDIRECT", Target: true, module: "xt_REDIRECT"},
	{Name: "REJECT", Target: true}, // see Alias
	{Name: "SNAT", Target: true, module: "xt_nat"},
}

// Support says whether the running kernel has an extension for a family. iptables-legacy and iptables-nft use the same
// ones.
type Support struct {
	Family detect.Family `json:"family"`
	Extension

	// Has is Unknown where a module may bring the extension: asking the kernel would load it. Otherwise Err says why.
	Has detect.Answer `json:"has"`
	Err error         `json:"-"`
}

// Alias is the module for which the kernel asks when it does not have the extension. Some modules have that very name.
func (s Support) Alias() string {
	if s.Family == detect.IPv6 {
		return "ip6t_" + s.Name
	}
	return "ipt_" + s.Name
}

// modules are those that can have the extension.
func (s Support) modules() []string { return []string{s.module, s.Alias()} }

var errNobody = errors.New("no list of ip_tables' can be read, and there is no nf_tables to ask")

// Look looks for the extensions. nft says that the kernel may have nf_tables, which is asked where that loads no module
// but nft_compat.
func Look(nft bool) []Support {
	ask := func(Support) (detect.Answer, error) { return detect.Unknown, errNobody }
	if nft {
		c := newCompat()
		defer c.close()
		ask = c.ask
	}
	k := look("")
	var all []Support
	for _, family := range []detect.Family{detect.IPv4, detect.IPv6} {
		for _, x := range Wanted {
			s := Support{Family: family, Extension: x}
			s.Has, s.Err = k.has(s, ask)
			all = append(all, s)
		}
	}
	return all
}

// has answers from the list of what is registered, which only ip_tables makes, and from the modules that there are. It
// asks the kernel only where that cannot load one.
func (k kernel) has(s Support, ask func(Support) (detect.Answer, error)) (detect.Answer, error) {
	registered, listed := k.lists[list{s.Family, s.Target}]
	among := func(names []string) bool {
		return slices.ContainsFunc(s.modules(), func(module string) bool { return slices.Contains(names, module) })
	}
	nothingLoads := !k.loads || among(k.present)
	noModule := k.known && !among(k.loadable)
	switch {
	case slices.Contains(registered, s.Name):
		return detect.Yes, nil
	case nothingLoads && !listed:
		return ask(s)
	case nothingLoads || noModule:
		return detect.No, nil
	}
	return detect.Unknown, nil // a module may bring it
}
