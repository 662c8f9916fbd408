// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// What the rules and their fixes ask. What returns a string returns "" where a rule does not apply.

func (r *Report) has(capability string) bool { return slices.Contains(r.Capabilities, capability) }

// failed is the first question to the kernel that failed, with this error or, if that is nil, with any.
func (r *Report) failed(kind error) string {
	for _, e := range r.Host.Evidence {
		if e.Err != nil && (kind == nil || errors.Is(e.Err, kind)) {
			return fmt.Sprintf("%s %s: %v", e.Backend, e.Family, e.Err)
		}
	}
	return ""
}

// blind reports that this process may not ask the kernel, so that what else seems to be wrong may be due to that.
func (r *Report) blind() bool {
	return !r.has(netAdmin) || r.failed(unix.EPERM) != "" || r.failed(unix.EAFNOSUPPORT) != ""
}

// doubt is why the host's backend is not certain, unless somebody has decided.
func (r *Report) doubt() string {
	if r.Host.Conclusive {
		return ""
	}
	if r.decided() && r.failed(nil) == "" {
		return ""
	}
	return r.Host.Uncertainty()
}

// decided reports that somebody has decided: by the variable, by select, or by not having installed the wrapper.
func (r *Report) decided() bool {
	switch r.Here.How {
	case here.Variable, here.NotWrapped, here.Missing:
		return true
	}
	if r.Variable != "" && r.Variable == r.Here.Backend {
		return true
	}
	memory := r.Host.Remembered
	return memory != nil && (memory.Reason == detect.Override || r.Here.How == here.Switch)
}

// doubtBy is a failed question, as failed has it, that leaves the host's backend uncertain.
func (r *Report) doubtBy(kind error) string { return when(r.doubt() != "", r.failed(kind)) }

// foreignChains is a chain that leaves the host's backend uncertain. What is remembered does not change that, and
// would be the reason that doubt gives.
func (r *Report) foreignChains() string {
	for _, e := range r.Host.Evidence {
		if len(e.Foreign) > 0 && r.doubt() != "" {
			c := e.Foreign[0]
			return fmt.Sprintf("nftables' table %q (%s) has chain %q, which is not iptables' own "+
				"or has rules that are not", c.Table, e.Family, c.Name)
		}
	}
	return ""
}

// faults says in which tables iptables-nft fails or has no effect, although it lists them.
func (r *Report) faults() string {
	var all []string
	for _, e := range r.Host.Evidence {
		for _, f := range e.Faults {
			all = append(all, fmt.Sprintf("%s %s: %s", e.Backend, e.Family, f.Explain()))
		}
	}
	return strings.Join(all, "; ")
}

// nftFamilies are the families as nft calls them.
var nftFamilies = map[detect.Family]string{detect.IPv4: "ip", detect.IPv6: "ip6"}

// dormantTable is the first table that is switched off, as nft calls it: "ip6 filter".
func (r *Report) dormantTable() string {
	for _, e := range r.Host.Evidence {
		for _, f := range e.Faults {
			if f.Kind == detect.FaultDormant {
				return nftFamilies[e.Family] + " " + f.Table
			}
		}
	}
	return ""
}

// differsBy says whether iptables here is known to be wrong, and why it is what it is. In the namespace of another
// container, the stored backend says nothing.
func (r *Report) differsBy(how string) string {
	if !r.Here.Differs || r.Here.How != how {
		return ""
	}
	elsewhere := r.Network.Process1 == detect.No
	if elsewhere && how != here.Variable {
		return ""
	}
	return string(r.Here.Backend)
}

// podNetwork says why the node's rules cannot be seen here. Rules of what works inside a container's own network,
// such as a mesh's or those for Docker's name server, say nothing of the node.
func (r *Report) podNetwork() string {
	switch r.Host.Reason {
	case detect.Default, detect.Remembered:
		return when(r.Network.Own, r.doubt())
	case detect.RuleCount:
		inside := r.Network.Own && !r.decided() && r.Here.How != here.Switch && r.allInside()
		return when(inside, "the only rules here are of this network's own programs ("+r.Host.Because()+")")
	}
	return ""
}

// insiders begin the names of chains that are made in a container's network for that one alone.
var insiders = []string{"DOCKER_OUTPUT", "DOCKER_POSTROUTING", "ISTIO_", "PROXY_INIT_"}

func ofInsider(chain string) bool {
	return slices.ContainsFunc(insiders, func(begin string) bool { return strings.HasPrefix(chain, begin) })
}

// allInside reports that there are user-defined chains, and that all of them are such ones.
func (r *Report) allInside() bool {
	found := false
	for _, e := range r.Host.Evidence {
		for _, t := range e.Tables {
			for _, chain := range t.Chains {
				found = true
				if !ofInsider(chain) {
					return false
				}
			}
		}
	}
	return found
}

// idleVariable reports that the variable says one thing, and the command does not run the wrapper, which would obey it.
func (r *Report) idleVariable() bool {
	obeyed := r.Here.How == here.Variable || r.Here.How == here.Missing || r.Here.Backend == r.Variable
	return !r.distrusted && !obeyed
}

// changing reports that each call decides again, and may decide otherwise than the last one.
func (r *Report) changing() bool {
	return r.Here.How == here.EachCall && r.doubtBy(unix.EACCES) == "" && !r.blind()
}

// brokenNames says which of the six commands are broken. Where none was found, one reason is enough. Broken links
// that are somebody else's were found.
func (r *Report) brokenNames() (noneFound, broken string) {
	clientsDir := r.dirArgument == " --dir "+word(programs.Dir(r.Client))
	var faults []string
	for _, n := range r.Names {
		elsewhere := clientsDir && slices.Contains(r.elsewhere, n.Name)
		if n.Error != "" && !elsewhere {
			faults = append(faults, fmt.Sprintf("%s (%s)", n.Name, n.Error))
		}
		if r.says[n.Name].other && r.Here.Backend != "" && !r.unusable() {
			faults = append(faults, fmt.Sprintf("%s (%q is not iptables)", n.Name, n.ResolvesTo))
		}
	}
	if len(faults) == len(r.Names) && r.notOurs == nil {
		return r.Names[0].Error, ""
	}
	return "", strings.Join(faults, ", ")
}

// mixed says which commands run which backend, if they differ. Those that run the wrapper run what it decides for.
func (r *Report) mixed() string {
	byMode := map[detect.Mode][]string{}
	for i, n := range r.Names {
		otherwise := r.says[n.Name].backend
		bothWrapped := n.Wrapper && r.Names[0].Wrapper
		if i == 0 || bothWrapped {
			otherwise = r.Here.Backend // which is what the first command runs
		}
		mode := cmp.Or(n.Mode, otherwise)
		byMode[mode] = append(byMode[mode], n.Name)
	}
	nft, legacy := byMode[detect.NFT], byMode[detect.Legacy]
	if nft == nil || legacy == nil {
		return ""
	}
	return strings.Join(nft, " ") + " is nft, " + strings.Join(legacy, " ") + " is legacy"
}

// neverWrapped reports that none of the six commands leads to the wrapper or to its switch: select and reset refuse.
func (r *Report) neverWrapped() bool {
	return !slices.ContainsFunc(r.Names, func(n layout.Status) bool { return n.Wrapper || n.Switched })
}

// movable reports whether this user can change the commands.
func (r *Report) movable() bool { return r.unwritable == nil && r.openPath == "" && r.notOurs == nil }

// resettable reports whether this user can reset the commands: forget what is remembered, and point those at the
// wrapper that do not lead to it.
func (r *Report) resettable() bool {
	stuck := slices.ContainsFunc(r.Names, func(s layout.Status) bool { return !s.Wrapper && s.Unwritable != nil })
	return r.noMemory == nil && r.notOurs == nil && !stuck
}

// removable reports whether rules of the other backend can be removed from here.
func (r *Report) removable() bool {
	return r.user == 0 && r.has(netAdmin) && !r.unusable() && !r.otherNotInPath &&
		(r.Host.Mode == detect.Legacy || r.has(netRaw) && r.lock == nil && r.holder == "")
}
