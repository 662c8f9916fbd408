// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// wanted is the backend whose programs have to work: the host's where it is known, else that of iptables here.
func (r *Report) wanted() detect.Mode {
	if r.Host.Conclusive || r.Here.Backend == "" {
		return r.Host.Mode
	}
	return r.Here.Backend
}

func (r *Report) programError(wanted bool) string {
	for _, p := range r.Programs {
		// Without CAP_NET_ADMIN, or without its backend in the kernel, even a good program fails.
		consequence := !p.missing && (r.blind() || r.unsupported() == string(p.Mode) || r.Host.Of(p.Mode, detect.IPv4).Supported == detect.No)
		if p.Error != "" && (p.Mode == r.wanted()) == wanted && !consequence {
			return p.Error
		}
	}
	return ""
}

func (r *Report) programMissing() string { return r.programError(true) }
func (r *Report) otherMissing() string   { return r.programError(false) }

func (r *Report) versionsDiffer() string {
	var releases, said []string
	for _, p := range r.Programs {
		var release string
		if _, err := fmt.Sscanf(p.Version, "iptables v%s", &release); err != nil {
			return ""
		}
		releases = append(releases, release)
		said = append(said, string(p.Mode)+" "+release)
	}
	if len(slices.Compact(releases)) < 2 {
		return ""
	}
	return strings.Join(said, ", ")
}

func (r *Report) fileCapsDiffer() string {
	if r.withoutFileCaps() != "" {
		return ""
	}
	return strings.Join(r.fileCaps, ", ")
}

func (r *Report) unsupported() string {
	mode := r.wanted()
	lacking := r.Host.Of(mode, detect.IPv4).Supported == detect.No || mode == detect.Legacy && !r.canLoad
	if !lacking || r.blind() {
		return ""
	}
	return string(mode)
}

func (r *Report) noLock() string {
	if r.lock == nil || r.wanted() != detect.Legacy {
		return ""
	}
	return r.lock.Error()
}

// refused lists what nf_tables refused in the dry run, and the modules that would provide it.
func (r *Report) refused() (features, modules []string) {
	if r.blind() {
		return nil, nil
	}
	for _, e := range r.Host.Evidence {
		for _, f := range e.Features {
			if f.Has != detect.No || e.Supported == detect.No {
				continue
			}
			features = append(features, fmt.Sprintf("a %s (%s: %v)", f.Name, e.Family, f.Err))
			for _, module := range featureModules[f.Name] {
				if !slices.Contains(modules, module) {
					modules = append(modules, module)
				}
			}
		}
	}
	return features, modules
}

// featureModules are what the kernel needs for each feature, if it is not built in.
var featureModules = map[string][]string{
	detect.FeatureTable: {"nf_tables"}, detect.FeatureFilter: {"nf_tables"}, detect.FeatureNAT: {"nft_chain_nat"},
	detect.FeatureRule: {"nft_counter"}, detect.FeatureMatch: {"nft_compat", "xt_comment"},
}

func (r *Report) cannotAdd() string {
	features, _ := r.refused()
	if r.wanted() != detect.NFT {
		return ""
	}
	return strings.Join(features, ", ")
}

// onlyLegacy: nothing else speaks for legacy.
func (r *Report) onlyLegacy() string {
	features, _ := r.refused()
	if r.Host.Reason != detect.OnlySupported || r.Here.How != EachCall {
		return ""
	}
	return strings.Join(features, ", ")
}

func (r *Report) featureModules() string {
	_, modules := r.refused()
	return strings.Join(modules, " ")
}

func (r *Report) supportModules() string {
	if r.wanted() == detect.NFT {
		return "nf_tables nft_compat"
	}
	return "iptable_filter ip6table_filter"
}

func (r *Report) unreadable() string {
	if r.wanted() != detect.NFT || r.nativeTables() != "" {
		return ""
	}
	return strings.Join(r.Unreadable, "; ")
}

func (r *Report) conflict() string {
	for _, c := range r.Host.Conflicts {
		if c != detect.RulesInBoth { // strayRules says more
			return c.Explain()
		}
	}
	return ""
}

// owners create chains with these prefixes.
var owners = [...]struct{ prefix, owner string }{
	{"KUBE-", "Kubernetes"}, {"CNI-", "CNI plugins"}, {"cali-", "Calico"}, {"CILIUM_", "Cilium"}, {"OLD_CILIUM_", "Cilium"},
	{"FLANNEL", "Flannel"}, {"WEAVE", "Weave Net"}, {"ANTREA-", "Antrea"}, {"AWS-", "the Amazon VPC CNI"},
	{"ISTIO_", "Istio"}, {"PROXY_INIT_", "Linkerd"}, {"CONSUL_", "Consul"}, {"DOCKER", "Docker"}, {"NETAVARK", "Podman"},
	{"LIBVIRT_", "libvirt"}, {"ts-", "Tailscale"}, {"ufw", "ufw"}, {"f2b-", "fail2ban"},
}

// strayRules lists what is in the backend that the host does not use, and whose chains there are.
func (r *Report) strayRules() string {
	if r.Here.Differs { // they are likely its own
		return ""
	}
	var tables, whose []string
	for _, e := range r.Host.Evidence {
		if e.Backend == r.Host.Mode {
			continue
		}
		for _, t := range e.Tables {
			if t.Rules.Min > 0 {
				tables = append(tables, fmt.Sprintf("%d in %s %s %s", t.Rules.Min, e.Backend, e.Family, t.Name))
			}
			for _, chain := range t.Chains {
				for _, o := range owners {
					if strings.HasPrefix(chain, o.prefix) && !slices.Contains(whose, o.owner) {
						whose = append(whose, o.owner)
					}
				}
			}
		}
	}
	if len(tables) > 0 && len(whose) > 0 {
		tables = append(tables, "with chains of "+strings.Join(whose, ", "))
	}
	return strings.Join(tables, ", ")
}

// missingExtensions are those that the wanted backend lacks in a family. If it has none at all, the family is not loaded.
func (r *Report) missingExtensions() []Extension {
	var missing []Extension
	loaded := map[detect.Family]bool{}
	for _, x := range r.Extensions {
		loaded[x.Family] = loaded[x.Family] || x.Backend == r.wanted() && x.Has == detect.Yes
	}
	for _, x := range r.Extensions {
		if x.Has == detect.No && x.Backend == r.wanted() && loaded[x.Family] {
			missing = append(missing, x)
		}
	}
	return missing
}

func (r *Report) extensionsMissing() string {
	var names []string
	for _, x := range r.missingExtensions() {
		names = append(names, fmt.Sprintf("%s (%s)", x.Name, x.Family))
	}
	return strings.Join(names, ", ")
}

// extensionModules are the names by which the kernel itself asks for them, which are aliases of the modules.
func (r *Report) extensionModules() string {
	prefix := map[detect.Family]string{detect.IPv4: "ipt_", detect.IPv6: "ip6t_"}
	var names []string
	for _, x := range r.missingExtensions() {
		names = append(names, prefix[x.Family]+x.Name)
	}
	return strings.Join(names, " ")
}

func (r *Report) sharedProcesses() string {
	if !r.strangers || r.Here.How == Switch || r.Here.How == NotWrapped || r.denied() != "" || r.blind() {
		return ""
	}
	return "process 1 is not this container's (hostPID, shareProcessNamespace), or cannot be inspected"
}

func (r *Report) cannotRemember() string {
	if r.fixed == nil || r.forgetful == nil || r.strangers || r.Here.How == Switch || r.Here.How == NotWrapped {
		return ""
	}
	return r.forgetful.Error()
}

func (r *Report) readOnly() string {
	if r.fixed == nil || r.forgetful != nil || r.Here.How == NotWrapped {
		return ""
	}
	var errno unix.Errno
	if errors.As(r.fixed, &errno) {
		return errno.Error()
	}
	return r.fixed.Error()
}
