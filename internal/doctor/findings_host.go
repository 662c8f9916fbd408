// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Whether the host's backend is known.

func (f *facts) podNetwork() *Finding {
	hasRules := slices.ContainsFunc(f.Host.Evidence, func(e Evidence) bool { return e.Rules == evidence.Yes })
	if !f.Network.Own || f.Host.Now().Conclusive || hasRules || f.pinned() || !f.process.netAdmin {
		return nil
	}
	return &Finding{
		Severity: warning,
		Text: "Rules made here do not act on the node, and nothing here shows which backend it uses: this looks like " +
			"the Pod's own network (" + List(f.Network.Interfaces) + ").",
		Look: []string{"ip link"},
		Do: "If the rules are for the node, set hostNetwork: true in the Pod's spec (docker run --network host). If they " +
			"are for the Pod, either backend will do, as long as all its programs use the same: set IPTABLES_WRAPPER_MODE " +
			"in each container.",
	}
}

// pinned reports that somebody has chosen the backend: the variable, or select --mode.
func (f *facts) pinned() bool {
	return f.Here.How == byVariable || f.place.Memory.Read().Reason == evidence.Selected
}

func (f *facts) uncertain() *Finding {
	found := Finding{Severity: warning, Look: []string{showEvidence}}
	err := f.Host.Err()
	certain := f.Host.Now().Conclusive
	switch {
	case len(f.unstarted) > 0:
		found.Text = "Other users could replace what root runs, so doctor did not start it: " + List(f.unstarted) + "."
		found.Look = []string{"ls -ld " + f.place.Dir}
		found.Do = "Let only root write to iptables and to its directory."
	case !f.process.netAdmin || f.denied() || f.kernel() != nil || f.podNetwork() != nil:
		return nil
	case f.pinned() && err == nil && f.Host.Conflict == "":
		return nil
	case certain && strings.Contains(f.Host.Conflict, evidence.HintChain):
		found.Text = "The host uses " + string(f.wanted()) + ", but there is evidence against it: " + f.Host.Conflict + "."
		found.Do = "Find out whether two kubelets or nodes share this network. Otherwise, reboot the node: then " +
			"kubelet's chain is only in the backend that kubelet uses."
	case certain && (f.keeping == "" || f.Here.How != byEachCall || f.Host.Reason.Kubelet()):
		return nil
	case certain:
		found.Text = "The backend can change while this container runs, because each call decides again: " + f.keeping + "."
		found.Do = "In the Pod's spec, set IPTABLES_WRAPPER_MODE to " + string(f.Host.Now().Mode) + "."
	case f.Host.Conflict != "":
		found.Text = "iptables here may run the wrong backend: " + f.Host.Conflict + "."
		found.Do = "On the node, have iptables and ip6tables use the same backend, and restart kubelet. A reboot removes " +
			"what is left in the other backend."
	case errors.Is(err, unix.EACCES):
		found.Text = "iptables here may run the wrong backend: this user cannot read which tables legacy has (" +
			firstLine(err) + ")."
		found.Do = "In the Pod's spec, run the container as root or with group 0 (runAsGroup: 0), or set " +
			"IPTABLES_WRAPPER_MODE."
	default:
		found.Text = "iptables here may run the wrong backend: " + f.Host.Uncertainty + "."
		found.Do = "If kubelet is still starting, wait: its chains decide. Otherwise set IPTABLES_WRAPPER_MODE in the " +
			"Pod's spec to the backend of the host's own programs: on the node, iptables --version shows it."
	}
	return &found
}
