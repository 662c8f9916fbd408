// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"unicode"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// A rule is one row of the table: when it applies, the text with its placeholders filled in is a finding, and so is the
// fix. The placeholder {} is what when returned, which is "" where the rule does not apply.
type rule struct {
	group    group
	severity Severity
	when     func(*Report) string
	text     string
	fix      string
}

// Only the first rule of a group that applies is reported: the others are consequences of it, or say the same.
type group int

const (
	alone   group = iota
	sight         // why the host's backend is not certain
	backend       // why iptables here is not what the host uses
)

const (
	addNetAdmin = "add NET_ADMIN and NET_RAW to securityContext.capabilities of the container (docker run --cap-add=NET_ADMIN --cap-add=NET_RAW)"
	bothModes   = "install iptables 1.8.4 or newer with both backends in the image"
	moveChain   = "run: nft list ruleset, and have the program that uses nft directly put its chains into a table with a name of its own"
	tmpfs       = "mount a tmpfs on /dev/shm (docker run --tmpfs /dev/shm; Kubernetes: an emptyDir with medium: Memory)"
	runInstall  = "run: iptables-wrapper install"
	runReset    = "run: iptables-wrapper reset"
)

// table has the rules of a group in the order of their causes: that nearest to the root first.
var table = []rule{
	{sight, Problem, (*Report).withoutFileCaps, "the programs have file capabilities that the wrapper's file lacks, so the wrapper cannot look at the host: {}",
		"in the image, as root: RUN iptables-wrapper install"},
	{sight, Problem, (*Report).withoutNetAdmin, "{}: iptables can neither read nor change rules", addNetAdmin},
	{sight, Problem, (*Report).foreignUserNamespace, "this process has CAP_NET_ADMIN, but not over this network namespace, which belongs to another user namespace",
		"run the container without a user namespace (hostUsers: true), or give it a network namespace of its own"},
	{sight, Warning, (*Report).denied, "the host's backend is not certain: {}", "run as root or with group 0, or add CAP_DAC_READ_SEARCH"},
	{sight, Warning, (*Report).withoutProc, "the host's backend is not certain: {}", "mount /proc in this container"},
	{sight, Warning, (*Report).failed, "the host's backend is not certain: {}", "see the kernel's log on the host (dmesg); iptables-wrapper doctor --all shows each error"},
	{sight, Problem, (*Report).nativeTables, "{}: iptables-nft can neither list nor change such a table", moveChain},
	{sight, Warning, (*Report).ownRules, "this container chose {} before the host showed what it uses, and the rules found may be its own; this looks like the Pod's own network, not the node's",
		"if its rules are for the node, set hostNetwork: true in the Pod's spec"},
	{sight, Warning, (*Report).remembers, "this container chose {} before the host showed what it uses, and the rules found may be its own",
		"if kubelet is still starting, run: iptables-wrapper select --wait 2m"},
	{sight, Warning, (*Report).ownNetwork, "found neither a kubelet chain nor any rule: this looks like the Pod's own network, not the node's",
		"if its rules are for the node, set hostNetwork: true in the Pod's spec"},
	{sight, Warning, (*Report).onlyLegacy, "iptables here uses legacy only because iptables-nft cannot add {}", "if the host's other programs use nft, on the host, run: modprobe -a {featureModules}"},
	{sight, Warning, (*Report).uncertain, "{}", "if kubelet is still starting, run: iptables-wrapper select --wait 2m"},

	{backend, Problem, (*Report).mixed, "some iptables commands run nft and others legacy: {}", runReset},
	{backend, Problem, (*Report).variableWrong, "{variable} is {here}, but the host uses {host} ({because})", "unset {variable} in the container's environment"},
	{backend, Problem, (*Report).storedWrong, differs, runReset + " (or delete the Pod)"},
	{backend, Problem, (*Report).rememberedWrong, differs + " This container remembers {here} from an earlier call",
		runReset + ", and restart the program that writes rules (or delete the Pod)"},
	{backend, Problem, (*Report).neverInstalled, differs + " iptables was never put behind the wrapper",
		runInstall + ", and add it to the image: RUN iptables-wrapper install"},
	{backend, Warning, (*Report).unwrapped, "iptables here is always {here}, whatever the host uses: it was never put behind the wrapper",
		runInstall + ", and add it to the image: RUN iptables-wrapper install"},
	{backend, Warning, (*Report).variableRedundant, "{variable}={} has no effect: iptables already resolves to {program}", "unset {variable} in the container's environment"},
	{backend, Warning, (*Report).variableLate, "{variable}={} has no effect: iptables already resolves to {program}", "run: iptables-wrapper select --mode {}"},
	{backend, Warning, (*Report).variableDistrusted, "{variable}={} has no effect: the wrapper's file is set-user-ID or set-group-ID", "as root, run: iptables-wrapper select --mode {}"},
	{backend, Warning, (*Report).cleanEnvironment, "{variable}={} does not reach programs that clear the environment, such as firewalld, openvpn and sudo: for those, iptables detects the mode",
		"run: iptables-wrapper select --mode {}"},

	{alone, Problem, (*Report).noneFound, "none of the six iptables commands was found: {}", runInstall},
	{alone, Warning, (*Report).broken, "broken: {}", runInstall},
	{alone, Warning, (*Report).foreign, "{}, a program that is neither this wrapper nor part of iptables", "if the wrapper should replace it, run: iptables-wrapper install --force"},
	{alone, Problem, (*Report).programMissing, "no usable {mode} iptables in this image: {}", bothModes},
	{alone, Warning, (*Report).otherMissing, "on a host that uses the other backend, iptables would not run here: {}", bothModes},
	{alone, Warning, (*Report).versionsDiffer, "the programs are of different versions: {}", "install both from one package"},
	{alone, Warning, (*Report).fileCapsDiffer, "file capabilities differ from those of the wrapper's file: {}", "in the image, as root: RUN iptables-wrapper install"},
	{alone, Problem, (*Report).unsupported, "the mode is {}, but this kernel does not support it", "on the host, run: modprobe -a {supportModules}"},
	{alone, Problem, (*Report).cannotAdd, "iptables-nft cannot add {}: this kernel's nf_tables lacks a part", "on the host, run: modprobe -a {featureModules}"},
	{alone, Problem, (*Report).withoutNetRaw, "CAP_NET_RAW is missing; it is needed for iptables-legacy", "add NET_RAW to securityContext.capabilities of the container (docker run --cap-add=NET_RAW)"},
	{alone, Problem, (*Report).noLock, "iptables-legacy cannot lock its tables: {}", "docker run --tmpfs /run, or mount the host's /run/xtables.lock (type FileOrCreate)"},
	{alone, Problem, (*Report).unreadable, "iptables-nft cannot list all of its tables: {}", moveChain},
	{alone, Warning, (*Report).conflict, "{}", "reboot the node, or delete the chains and rules left over from the old mode"},
	{alone, Warning, (*Report).strayRules, "the other backend has rules too: {}. They are active, but iptables here does not list them",
		"find out what creates them and switch it to {host}; list them with: iptables-{other}-save"},
	{alone, Warning, (*Report).extensionsMissing, "the kernel lacks these iptables extensions: {}", "if something here needs them, on the host, run: modprobe -a {extensionModules}"},
	{alone, Warning, (*Report).sharedProcesses, "nothing is stored or remembered, so the backend can change while this container runs: {}",
		"run this when the container starts: iptables-wrapper select"},
	{alone, Warning, (*Report).cannotRemember, "the backend can change while this container runs: its links cannot be changed, and nothing can be remembered: {}", tmpfs},
	{alone, Note, (*Report).readOnly, "the links cannot be changed ({}), so every call detects the mode again", "no action needed: each call takes about 1 ms longer"},
}

const differs = "iptables in this container is {here}, but the host uses {host} ({because}). Rules written here have no effect on what the host evaluates with {host}."

// Diagnose fills in the findings, the most severe first.
func (r *Report) Diagnose() { r.Findings = r.diagnose(table) }

func (r *Report) diagnose(table []rule) []Finding {
	found := []Finding{}
	seen := map[group]bool{}
	for _, rule := range table {
		detail := ""
		if rule.group == alone || !seen[rule.group] {
			detail = clean(rule.when(r))
		}
		if detail == "" {
			continue
		}
		seen[rule.group] = true
		fill := r.placeholders(detail)
		found = append(found, Finding{rule.severity, fill.Replace(rule.text), fill.Replace(rule.fix)})
	}
	order := []Severity{Problem, Warning, Note}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return found
}

func (r *Report) placeholders(detail string) *strings.Replacer {
	other := detect.NFT
	if r.Host.Mode == detect.NFT {
		other = detect.Legacy
	}
	_, because, _ := strings.Cut(r.Host.String(), ": ")
	return strings.NewReplacer("{}", detail, "{variable}", ModeVariable, "{here}", string(r.Here.Backend), "{program}", r.Here.Program,
		"{host}", string(r.Host.Mode), "{other}", string(other), "{mode}", string(r.mode()), "{because}", because,
		"{supportModules}", r.supportModules(), "{featureModules}", r.featureModules(), "{extensionModules}", r.extensionModules())
}

// mode is the backend that calls use here.
func (r *Report) mode() detect.Mode {
	if r.Here.Backend != "" {
		return r.Here.Backend
	}
	return r.Host.Mode
}

// clean makes one line of a text and removes what a terminal might take for a command.
func clean(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }), " ")
}
