// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Whether iptables runs the host's backend, and what the other one has.

func (f *facts) wrongBackend() *Finding {
	found := Finding{Severity: problem, Look: []string{showEvidence, "ls -l " + f.place.Dir + "/iptables*"}}
	differing := f.differing()
	host := f.Host.now()
	if f.variableIsWrong() {
		found.Text = fmt.Sprintf("IPTABLES_WRAPPER_MODE is %q, which is no backend: every call of iptables fails with "+
			"status 2.", f.variable)
		found.Look = []string{"env"}
		found.Do = "In the Pod's spec, set it to nft or legacy, or remove it."
		return &found
	}
	switch {
	case f.Here.Backend != "" && f.Host.uses(f.Here.Backend.Other()):
		found.Text = fmt.Sprintf("iptables here runs %s, and the host uses %s (%s). So the host's programs do not see its "+
			"rules, and it does not see theirs.", f.Here.Backend, host.Mode, host.Because)
	case len(differing) > 0 && host.Conclusive:
		found.Text = fmt.Sprintf("%d of the six commands run %s, and the host uses %s (%s): %s.", len(differing),
			host.Mode.Other(), host.Mode, host.Because, list(shown(differing)))
		found.Do = f.wrap()
		return &found
	case len(differing) > 0:
		found.Text = fmt.Sprintf("iptables here runs %s, and %d of the six commands run the other backend: %s.",
			f.Here.Backend, len(differing), list(shown(differing)))
		found.Do = f.wrap()
		return &found
	default:
		if said, printed := f.failed(wrongBackend); printed {
			return said.finding()
		}
		return nil
	}
	cause, do := f.cause()
	found.Text += " " + cause
	found.Do = do
	return &found
}

// variableIsWrong reports that the variable is no backend, and that calls run the wrapper, which refuses that.
func (f *facts) variableIsWrong() bool {
	return f.variable != "" && !evidence.Mode(f.variable).Valid() && f.Here.How == byVariable
}

// cause says why iptables runs the wrong backend, and what helps.
func (f *facts) cause() (why, do string) {
	const restart = " Then restart the program that makes the rules. Or replace the Pod: a new container decides again."
	reset := "In this container, run iptables-wrapper reset" + f.dirFlag() + "." + restart
	switch f.Here.How {
	case bySwitch:
		why = "An earlier call or select stored " + string(f.Here.Backend) + " in the switch, " + f.place.Dir +
			"/iptables-current."
		if f.brought {
			why += " The switch is older than this container."
			reset += " A new container would be wrong again if the image or a volume brings the switch: run " +
				"iptables-wrapper reset at the end of the image's build, or fill the volume again."
		}
		return why, reset
	case byMemory:
		return "This container remembers " + string(f.Here.Backend) + " from an earlier call (" + f.Host.Because + ").", reset
	case byVariable:
		return "IPTABLES_WRAPPER_MODE is " + f.variable + ".", "In the Pod's spec, remove IPTABLES_WRAPPER_MODE, or set it to " +
			string(f.Host.now().Mode) + "."
	}
	why = "It does not run the wrapper: " + f.Here.Client + " leads to " + cmp.Or(f.Here.Program, "another program") + "."
	if f.wrapperIn != "" {
		why = "PATH finds " + f.Here.Client + " first, and the wrapper is in " + f.wrapperIn + "."
	}
	return why, f.wrap()
}

// wrap is what puts the wrapper in front of the commands.
func (f *facts) wrap() string {
	text := "In the image, run iptables-wrapper install" + f.dirFlag()
	if slices.ContainsFunc(f.Names, func(n Name) bool { return n.other && !n.Wrapper }) {
		text += " --force"
	}
	return text + "."
}

// differing are the commands that run another backend than the host where that is known, else than iptables.
func (f *facts) differing() (names []string) {
	right := f.Here.Backend
	if f.Host.now().Conclusive {
		right = f.Host.now().Mode
	}
	for _, n := range f.Names {
		if n.Backend != "" && right != "" && n.Backend != right {
			names = append(names, n.Name)
		}
	}
	return names
}

func (f *facts) notWrapped() *Finding {
	var names []string
	silent := false
	for _, n := range f.Names {
		bypasses := n.Error == "" && !n.Wrapper && !n.Switched
		if bypasses && (n.Backend != "" || n.silent) {
			names = append(names, n.Name)
			silent = silent || n.silent
		}
	}
	if len(names) == 0 || f.wrongBackend() != nil {
		return nil
	}
	found := Finding{
		Severity: warning,
		Text: fmt.Sprintf("%d of the six commands in %s do not run the wrapper: %s. ", len(names), f.place.Dir,
			list(shown(names))),
		Look: []string{"ls -l " + f.place.Dir + "/iptables*"},
		Do:   f.wrap(),
	}
	if silent {
		found.Text += "What they run is not iptables, or did not say which backend it runs."
		found.Do += " Leave a script that enters the host and runs the iptables there."
	} else {
		found.Text += "They run " + string(f.Names[slices.IndexFunc(f.Names, func(n Name) bool {
			return n.Name == names[0]
		})].Backend) + " on every host, whatever that uses."
	}
	return &found
}

func (f *facts) bothBackends() *Finding {
	r := f.other
	other := f.wanted().Other()
	if !r.any() {
		return nil
	}
	found := Finding{Severity: warning, Look: r.look(other)}
	found.Text = fmt.Sprintf("%s has %s too", other, r.whose())
	switch {
	case f.Here.Backend == other:
		found.Text += ". The kernel applies both, and iptables here lists these, because it runs the wrong backend."
	default:
		found.Text += ". The kernel applies them, and iptables here does not list them."
	}
	if r.acts() {
		found.Severity = problem
		found.Text += " " + r.effect(f.wanted())
	}
	const cleanUp = " Then let that program clean up its own rules, or reboot the node. Do not empty the tables by hand: " +
		"their policies would stay, and could cut all traffic."
	found.Do = fmt.Sprintf("The host uses %s. Find what still writes to %s, on the node and in other containers, and have "+
		"it use %s.", f.wanted(), other, f.wanted()) + cleanUp
	if !f.Host.now().Conclusive {
		found.Do = "Find out which backend the host's own programs use (on the node: iptables --version), and have all " +
			"others use it." + cleanUp
	}
	return &found
}

// effect says what the rules do that no rule of the right backend can undo.
func (r rules) effect(wanted evidence.Mode) string {
	var effects []string
	switch {
	case r.services > 0:
		effects = append(effects, "Rules of kube-proxy there send connections of Services to Pods that may be gone.")
	case r.dnat == 1:
		effects = append(effects, "One rule there redirects connections.")
	case r.dnat > 1:
		effects = append(effects, thousands(r.dnat)+" rules there redirect connections.")
	}
	if len(r.policies) > 0 {
		slices.Sort(r.policies)
		effects = append(effects, "Policy DROP is set there for "+list(r.policies)+": what no rule there accepts is lost, "+
			"whatever "+string(wanted)+" accepts.")
	}
	return strings.Join(effects, " ")
}

// whose says how many rules there are, and whose.
func (r rules) whose() string {
	total := thousands(r.number)
	if !r.exact {
		total = "about " + total
	}
	total += " rules"
	if r.number == 1 && r.exact {
		total = "1 rule"
	}
	names := slices.SortedFunc(maps.Keys(r.owners), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.owners[b], r.owners[a]), cmp.Compare(a, b))
	})
	if i := slices.Index(names, ""); i >= 0 {
		names = append(slices.Delete(names, i, i+1), "")
	}
	var all []string
	for _, name := range names {
		all = append(all, cmp.Or(name, "others")+" "+thousands(r.owners[name]))
	}
	switch {
	case r.number == 0 && len(r.foreign) > 0:
		return "chains that are not iptables' own (" + list(r.foreign) + ")"
	case r.number == 0:
		return "no rule"
	case len(all) == 0:
		return total
	}
	return total + " (" + list(all) + ")"
}

// look has the commands that show the rules, with counters: here if a program for them is installed.
func (r rules) look(mode evidence.Mode) (commands []string) {
	for _, family := range r.families {
		commands = append(commands, family+"-"+string(mode)+"-save -c")
	}
	if mode == evidence.NFT && !r.listed {
		commands = []string{"nft list ruleset"}
	}
	return commands
}

func (f *facts) podNetwork() *Finding {
	shows := f.Host.now().Conclusive || f.hasRules()
	if !f.Network.Own || shows || f.pinned() || !f.process.netAdmin {
		return nil
	}
	return &Finding{
		Severity: warning,
		Text: "This looks like the Pod's own network, not the node's (" + list(f.Network.Interfaces) + "): nothing in it " +
			"shows what the host uses, and rules here do not act on the node.",
		Look: []string{"ip link"},
		Do: "In the Pod's spec, set hostNetwork: true (docker run --network host) if the rules are for the node. If they " +
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
		found.Do = "Keep iptables in a directory that only root can write. Where root finds it in PATH, other users could " +
			"replace what root runs."
	case !f.process.netAdmin || f.denied() || f.kernel() != nil || f.podNetwork() != nil || f.pinned():
		return nil
	case f.Host.now().Conclusive && f.hintInBoth():
		found.Text = "The host uses " + string(f.wanted()) + ", and something contradicts it: " + f.Host.Conflict + "."
		found.Do = "Find out whether two kubelets or nodes share this network. Otherwise, reboot the node: afterwards, " +
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
		found.Text = "The host's backend is not certain: this user cannot read which tables legacy has (" + firstLine(err) +
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
