// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Whether the host's backend is known.

func (f *facts) podNetwork() *Finding {
	shows := f.Host.now().Conclusive || f.hasRules()
	if !f.Network.Own || shows || f.pinned() || !f.process.netAdmin {
		return nil
	}
	return &Finding{
		Severity: warning,
		Text: "This looks like the Pod's own network, not the node's (" + list(f.Network.Interfaces) + "): nothing " +
			"in it " +
			"shows what the host uses, and rules here do not act on the node.",
		Look: []string{"ip link"},
		Do: "In the Pod's spec, set hostNetwork: true (docker run --network host) if the rules are for the node. If " +
			"they " +
			"are for the Pod, either backend will do, as long as all programs in the Pod use the same: " +
			"set IPTABLES_WRAPPER_MODE in each container.",
	}
}

// hintInBoth reports that both backends have kubelet's hint.
func (f *facts) hintInBoth() bool {
	var in []bool
	for _, mode := range evidence.Modes() {
		b := f.Host.Result.Of(mode)
		in = append(in, b[evidence.IPv4].Hint == evidence.Yes || b[evidence.IPv6].Hint == evidence.Yes)
	}
	return in[0] && in[1]
}

// hasRules reports that one of the backends has rules.
func (f *facts) hasRules() bool {
	for _, mode := range evidence.Modes() {
		for _, about := range f.Host.Result.Of(mode) {
			if about.Rules == evidence.Yes {
				return true
			}
		}
	}
	return false
}

// pinned reports that somebody has chosen the backend: the variable, or select --mode.
func (f *facts) pinned() bool {
	return f.Here.How == byVariable || f.place.remembered().Reason == evidence.Selected
}

func (f *facts) uncertain() *Finding {
	found := Finding{Severity: warning, Look: []string{showEvidence}}
	err := f.Host.Result.Err()
	switch {
	case len(f.unstarted) > 0:
		found.Text = "A program was not started, so doctor does not know what it would do: " + list(f.unstarted) + "."
		found.Look = []string{"ls -ld " + f.place.Dir}
		found.Do = "Keep iptables in a directory that only root can write. Where root finds it in PATH, other users " +
			"could " +
			"replace what root runs."
	case !f.process.netAdmin || f.denied() || f.kernel() != nil || f.podNetwork() != nil:
		return nil
	case f.pinned() && err == nil && f.Host.Conflict == "":
		return nil
	case f.Host.now().Conclusive && f.hintInBoth():
		found.Text = "The host uses " + string(f.wanted()) + ", and something contradicts it: " + f.Host.Conflict + "."
		found.Do = "Find out whether two kubelets or nodes share this network. Otherwise, reboot the node: " +
			"afterwards, " +
			"kubelet's chain is only where it uses it."
	case f.Host.Conflict != "" && !f.Host.now().Conclusive:
		found.Text = "The host's backend is not certain: " + f.Host.Conflict + "."
		found.Do = "On the node, have iptables and ip6tables use the same backend, and restart kubelet. " +
			"What was left behind in the other backend is gone after a reboot."
	case f.Host.now().Conclusive && (f.keeping == "" || f.Here.How != byEachCall || f.Host.Reason.Kubelet()):
		return nil
	case f.Host.now().Conclusive:
		found.Text = "Each call decides again, so the backend can change while this container runs: " + f.keeping + "."
		found.Do = "In the Pod's spec, set IPTABLES_WRAPPER_MODE to " + string(f.Host.now().Mode) + "."
	case errors.Is(err, unix.EACCES):
		found.Text = "The host's backend is not certain: this user cannot read which tables legacy has " +
			"(" + firstLine(err) +
			")."
		found.Do = "In the Pod's spec, run the container as root or with group 0 (runAsGroup: 0), or set " +
			"IPTABLES_WRAPPER_MODE."
	default:
		found.Text = "The host's backend is not certain: " + f.Host.Uncertainty + "."
		found.Do = "In the Pod's spec, set IPTABLES_WRAPPER_MODE to the backend of the host's other programs: on the " +
			"node, iptables --version shows it. If kubelet is still starting, wait: its chains will decide."
	}
	return &found
}
