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
)

// What the rules ask. What returns a string returns "" where a rule does not apply.

func (r *Report) has(capability string) bool {
	return slices.ContainsFunc(r.Capabilities, func(c Capability) bool { return c.Name == capability && c.Present })
}

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
func (r *Report) blind() bool { return !r.has("CAP_NET_ADMIN") || r.failed(unix.EPERM) != "" }

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
func (r *Report) differsBy(how here.How) string {
	return when(r.Here.Differs && r.Here.How == how && (r.Network.Process1 != detect.No || how == here.Variable), r.Here.Backend)
}

// names says which of the six commands are broken, or other programs. Where none was found, one reason is enough.
func (r *Report) names() (noneFound, broken, foreign string) {
	var faults, others []string
	for _, n := range r.Names {
		switch {
		case r.elsewhere && r.Here.How != here.Missing && slices.Contains(r.absent, n.Name): // PATH finds it elsewhere
		case n.Error != "":
			faults = append(faults, fmt.Sprintf("%s (%s)", n.Name, n.Error))
		case n.Mode == "" && !n.Wrapper:
			others = append(others, fmt.Sprintf("%s is %q", n.Name, n.ResolvesTo))
		}
	}
	switch {
	case r.bare:
		return "", "", ""
	case len(faults) == len(r.Names):
		return r.Names[0].Error, "", ""
	}
	return "", strings.Join(faults, ", "), strings.Join(others, ", ")
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
		consequence := r.bare || !p.missing && (r.blind() || r.unsupported() == p.Mode || r.lacks(p.Mode))
		if p.Error != "" && (p.Mode == r.wanted()) == wanted && !consequence {
			return string(p.Mode) + ": " + p.Error
		}
	}
	return ""
}

func (r *Report) lacks(mode detect.Mode) bool {
	return r.Host.Of(mode, detect.IPv4).Supported == detect.No
}

// unsupported is the wanted backend, if the kernel cannot have it.
func (r *Report) unsupported() detect.Mode {
	mode := r.wanted()
	if r.blind() || !r.lacks(mode) && (mode != detect.Legacy || r.canLoad) {
		return ""
	}
	return mode
}

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
	return when(len(slices.Compact(releases)) > 1, strings.Join(said, ", "))
}

// featureModules are what the kernel needs for each feature, if it is not built in.
var featureModules = map[string]string{
	detect.FeatureTable: "nf_tables", detect.FeatureFilter: "nf_tables", detect.FeatureNAT: "nft_chain_nat",
	detect.FeatureRule: "nft_counter", detect.FeatureMatch: "nft_compat xt_comment",
}

// refused lists what nf_tables refused in the dry run, and the modules that would provide it.
func (r *Report) refused() (features, modules string) {
	var refused, wanted []string
	for _, e := range r.Host.Evidence {
		for _, f := range e.Features {
			if f.Has != detect.No || e.Supported == detect.No || r.blind() {
				continue
			}
			refused = append(refused, fmt.Sprintf("a %s (%s: %v)", f.Name, e.Family, f.Err))
			if modules := featureModules[f.Name]; !slices.Contains(wanted, modules) {
				wanted = append(wanted, modules)
			}
		}
	}
	return strings.Join(refused, ", "), strings.Join(wanted, " ")
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

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
