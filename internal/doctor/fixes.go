// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// What the fixes ask, and what some of them say.

// cutOff says whether the commands are broken because the program that the switch points to is gone. Then install, which wants
// the programs of both backends, cannot help.
func (r *Report) cutOff() bool {
	return r.anyMissing() && !slices.ContainsFunc(r.Names, func(n layout.Status) bool { return n.Error == "" || !n.Switched })
}

// anyMissing reports whether a backend has no program.
func (r *Report) anyMissing() bool {
	return slices.ContainsFunc(r.Programs, func(p Program) bool { return p.missing })
}

// unusable reports whether a backend's program does not run.
func (r *Report) unusable() bool {
	return slices.ContainsFunc(r.Programs, func(p Program) bool { return p.Error != "" })
}

// movable reports whether this user can change the commands.
func (r *Report) movable() bool { return r.unwritable == nil && r.open == nil && r.claimed == nil }

// rebuild is what makes a new image whose commands run the wrapper.
func (r *Report) rebuild() string {
	if r.claimed != nil {
		return "add, as root:\nRUN iptables-wrapper install{dir} --force"
	}
	return "add, as root:\nRUN iptables-wrapper reset{dir}"
}

// selectable reports whether select stores a backend here, in the switch or in the memory.
func (r *Report) selectable() bool {
	wrapped := r.Here.How == here.EachCall || r.Here.How == here.Remembered || r.Here.How == here.Variable
	return !r.unusable() && (r.movable() || wrapped && r.claimed == nil && r.forgetful == nil && !r.strangers)
}

// removable reports whether rules of the other backend can be removed from here.
func (r *Report) removable() bool {
	return r.user == 0 && r.has("CAP_NET_ADMIN") && !r.unusable() &&
		(r.Host.Mode == detect.Legacy || r.has("CAP_NET_RAW") && r.lock == nil)
}

// plain matches what a shell and grep take as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_:-]+$`)

// leftovers lists the chains that the host's backend and the other one have under the same name, and kubelet's in the other
// one, and the commands that remove these. Restoring a table replaces it by what is left.
func (r *Report) leftovers() (chains, commands string) {
	var names []string
	for _, e := range r.Host.Evidence {
		if e.Backend == r.Host.Mode || !r.Host.Conclusive {
			continue
		}
		for _, t := range e.Tables {
			var stale []string
			for _, chain := range t.Chains {
				twice := slices.ContainsFunc(r.Host.Of(r.Host.Mode, e.Family).Tables, func(h detect.Table) bool {
					return h.Name == t.Name && slices.Contains(h.Chains, chain)
				})
				if plain.MatchString(chain) && (twice || chain == detect.HintChain || chain == detect.CanaryChain) {
					stale = append(stale, chain)
				}
			}
			if len(stale) > 0 {
				names = append(names, fmt.Sprintf("%s (%s %s)", strings.Join(stale, ", "), e.Family, t.Name))
				save := programs.Single(e.Backend, map[detect.Family]string{detect.IPv4: "iptables-", detect.IPv6: "ip6tables-"}[e.Family])
				commands += fmt.Sprintf("\n%ssave -t %s | grep -vE '[: ](%s)( |$)' | %srestore", save, t.Name, strings.Join(stale, "|"), save)
			}
		}
	}
	return strings.Join(names, ", "), commands
}
