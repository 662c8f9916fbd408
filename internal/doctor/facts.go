// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// What the rules and their fixes ask. What returns a string returns "" where a rule does not apply.

func (r *Report) has(capability string) bool { return slices.Contains(r.Capabilities, capability) }

// failed is the first question to the kernel that failed, with this error or with any.
func (r *Report) failed(kind error) string {
	for _, e := range r.Host.Evidence {
		if e.Err != nil && (kind == nil || errors.Is(e.Err, kind)) {
			return fmt.Sprintf("%s %s: %v", e.Backend, e.Family, e.Err)
		}
	}
	return ""
}

// blind says whether nothing could be asked: what else does not work is a consequence.
func (r *Report) blind() bool { return !r.has(netAdmin) || r.failed(unix.EPERM) != "" }

// doubt is why the host's backend is not certain, unless somebody has decided: by the variable, by select, or by not having
// installed the wrapper.
func (r *Report) doubt() string {
	now, by := r.Here, r.Host.Remembered
	decided := now.How == here.Variable || now.How == here.NotWrapped || now.How == here.Missing || r.Variable != "" && r.Variable == now.Backend ||
		by != nil && (by.Reason == detect.Override || now.How == here.Switch)
	if r.Host.Conclusive || decided && r.failed(nil) == "" {
		return ""
	}
	return r.Host.Uncertainty()
}

// failure is a failed question that leaves the host's backend uncertain.
func (r *Report) failure(kind error) string { return when(r.doubt() != "", r.failed(kind)) }

func (r *Report) foreignChains() string {
	return when(slices.ContainsFunc(r.Host.Evidence, func(e detect.Evidence) bool { return len(e.Foreign) > 0 }), r.doubt())
}

// differsBy says whether iptables here is known to be wrong, and why it is what it is. In the namespace of another
// container, the stored mode says nothing.
func (r *Report) differsBy(how string) string {
	return when(r.Here.Differs && r.Here.How == how && (r.Network.Process1 != detect.No || how == here.Variable), r.Here.Backend)
}

// names says which of the six commands are broken. Where none was found, one reason is enough.
func (r *Report) names() (noneFound, broken string) {
	var faults []string
	for _, n := range r.Names {
		elsewhere := r.dirArgument == " --dir "+word(programs.Dir(r.Client)) && slices.Contains(r.absent, n.Name) // PATH finds it
		if n.Error != "" && !elsewhere {
			faults = append(faults, fmt.Sprintf("%s (%s)", n.Name, n.Error))
		}
	}
	if len(faults) == len(r.Names) {
		return r.Names[0].Error, ""
	}
	return "", strings.Join(faults, ", ")
}

// mixed says which commands run which backend, if they differ.
func (r *Report) mixed() string {
	byMode := map[detect.Mode]string{}
	for _, n := range r.Names {
		byMode[n.Mode] += n.Name + " "
	}
	return when(byMode[detect.NFT] != "" && byMode[detect.Legacy] != "", byMode[detect.NFT]+"is nft, "+byMode[detect.Legacy]+"is legacy")
}

// wanted is the backend whose programs have to work: the host's where it is known, else that of iptables here.
func (r *Report) wanted() detect.Mode {
	if r.Host.Conclusive {
		return r.Host.Mode
	}
	return cmp.Or(r.Here.Backend, r.Host.Mode)
}

// programError is what is wrong with the programs of the wanted backend, or of the other one.
func (r *Report) programError(wanted bool) string {
	for _, p := range r.Programs {
		// Without CAP_NET_ADMIN, or without its backend in the kernel, even a good program fails.
		consequence := p.Path != "" && (r.blind() || r.lacks(p.Mode))
		unstarted := slices.ContainsFunc(r.unstarted, func(e exposure) bool { return e.file == p.Path })
		if p.Error != "" && (p.Mode == r.wanted()) == wanted && !consequence && !unstarted {
			return string(p.Mode) + ": " + p.Error
		}
	}
	return ""
}

// lacks reports that the kernel cannot have a backend.
func (r *Report) lacks(mode detect.Mode) bool {
	return r.Host.Of(mode, detect.IPv4).Supported == detect.No || mode == detect.Legacy && !r.canLoad
}

// refused lists what nf_tables refused in the dry run.
func (r *Report) refused() string {
	var refused []string
	for _, e := range r.Host.Evidence {
		for _, f := range e.Features {
			if f.Has == detect.No && e.Supported != detect.No && !r.blind() {
				refused = append(refused, fmt.Sprintf("a %s (%s: %v)", f.Name, e.Family, f.Err))
			}
		}
	}
	return strings.Join(refused, ", ")
}

// unusable reports whether a backend's program would not run here, whatever the rest is like.
func (r *Report) unusable() bool { return r.programError(true)+r.programError(false) != "" }

// movable reports whether this user can change the commands.
func (r *Report) movable() bool { return r.unwritable == nil && r.open == "" && r.claimed == nil }

// restore has the switch changed, where it was made, or here if that is possible.
func (r *Report) restore(possible bool, here string) fixes {
	build, refill := "reset{dir}", "delete the Pod, so that what fills this volume does so again"
	if r.claimed != nil {
		build = "install{dir} --force"
	}
	if r.Variable != "" && r.Variable == r.Here.Backend {
		refill = "remove {variable}, and " + refill
	}
	return fixes{
		{r.image, Image, "add, as root:\nRUN iptables-wrapper " + build},
		{possible, Container, here},
		{r.volume, Pod, refill},
		{always, Pod, renew},
	}
}

// add is what gives this user the capabilities.
func (r *Report) add() fixes {
	return fixes{
		{r.user == 0 || r.wrapperCaps, Pod,
			"add NET_ADMIN and NET_RAW to securityContext.capabilities of the container (docker run --cap-add=NET_ADMIN --cap-add=NET_RAW)"},
		{always, Pod, "run the container as root with NET_ADMIN and NET_RAW: Kubernetes gives them to no other user. " +
			"images/nonroot has file capabilities instead"},
	}
}

// removable reports whether rules of the other backend can be removed from here.
func (r *Report) removable() bool {
	return r.user == 0 && r.has(netAdmin) && !r.unusable() &&
		(r.Host.Mode == detect.Legacy || r.has(netRaw) && r.lock == nil)
}

// plain matches what a shell and grep take as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_:-]+$`)

// other looks at the backend that the host does not use: which rules it has, and how its chains begin, for their owners each have a
// prefix, such as KUBE-, cali- or DOCKER-; the chains that the host's backend has under the same name, and kubelet's; and the commands
// that remove these. Restoring a table replaces it by what is left.
func (r *Report) other() (rules, leftovers, commands string) {
	var tables, begin, names []string
	for _, e := range r.Host.Evidence {
		if e.Backend == r.Host.Mode {
			continue
		}
		for _, t := range e.Tables {
			if t.Rules.Min > 0 {
				tables = append(tables, fmt.Sprintf("%d in %s %s %s", t.Rules.Min, e.Backend, e.Family, t.Name))
			}
			var stale []string
			for _, chain := range t.Chains {
				if i := strings.IndexAny(chain, "-_") + 1; i > 0 && !slices.Contains(begin, chain[:i]+"*") {
					begin = append(begin, chain[:i]+"*")
				}
				twice := slices.ContainsFunc(r.Host.Of(r.Host.Mode, e.Family).Tables, func(h detect.Table) bool {
					return h.Name == t.Name && slices.Contains(h.Chains, chain)
				})
				if plain.MatchString(chain) && (twice || chain == detect.HintChain || chain == detect.CanaryChain) {
					stale = append(stale, chain)
				}
			}
			if len(stale) > 0 && r.Host.Conclusive {
				names = append(names, fmt.Sprintf("%s (%s %s)", strings.Join(stale, ", "), e.Family, t.Name))
				save := programs.Single(e.Backend, map[detect.Family]string{detect.IPv4: "iptables-", detect.IPv6: "ip6tables-"}[e.Family])
				commands += fmt.Sprintf("\n%ssave -t %s | grep -vE '[: ](%s)( |$)' | %srestore", save, t.Name, strings.Join(stale, "|"), save)
			}
		}
	}
	if rules = strings.Join(tables, ", "); rules != "" && begin != nil {
		rules += ", with chains " + strings.Join(begin, ", ")
	}
	return rules, strings.Join(names, ", "), commands
}
