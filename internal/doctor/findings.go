// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// where is the detail of a rule that applies under a condition.
func where[T ~string](condition bool, detail T) string {
	if condition {
		return string(detail)
	}
	return ""
}

// Diagnose fills in the findings, the most severe first.
func (r *Report) Diagnose() { r.Findings = r.diagnose(r.sight(), r.backend(), r.others()) }

// diagnose reports each rule that applies, but of sight and backend only the first: the others there are consequences of it,
// or say the same.
func (r *Report) diagnose(sight, backend, others []Finding) []Finding {
	found := []Finding{}
	for _, severity := range []Severity{Problem, Warning, Note} {
		for _, f := range slices.Concat(first(sight), first(backend), others) {
			if f.detail = clean(f.detail); f.detail != "" && f.Severity == severity {
				fill := r.placeholders(f.detail)
				f.Text, f.Fix = fill.Replace(f.Text), fill.Replace(f.Fix)
				found = append(found, f)
			}
		}
	}
	return found
}

// first returns the first rule that applies, if there is one.
func first(rules []Finding) []Finding {
	i := slices.IndexFunc(rules, func(f Finding) bool { return clean(f.detail) != "" })
	return rules[max(i, 0) : i+1]
}

func (r *Report) placeholders(detail string) *strings.Replacer {
	other := map[detect.Mode]detect.Mode{detect.NFT: detect.Legacy, detect.Legacy: detect.NFT}[r.Host.Mode]
	here := cmp.Or(r.Here.Backend, r.Host.Mode) // the backend that calls use here
	_, because, _ := strings.Cut(r.Host.String(), ": ")
	return strings.NewReplacer("{}", detail, "{variable}", programs.ModeVariable, "{here}", string(here), "{program}", r.Here.Program,
		"{host}", string(r.Host.Mode), "{other}", string(other), "{because}", because)
}

// clean makes one line of a text and removes what a terminal might take for a command.
func clean(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }), " ")
}

const (
	bothModes  = "install iptables 1.8.4 or newer with both backends in the image"
	moveChain  = "run: nft list ruleset, and have the program that uses nft directly put its chains into a table with a name of its own"
	tmpfs      = "mount a tmpfs on /dev/shm (docker run --tmpfs /dev/shm; Kubernetes: an emptyDir with medium: Memory)"
	runInstall = "run: iptables-wrapper install"
	addInstall = runInstall + ", and add it to the image: RUN iptables-wrapper install"
	inTheImage = "in the image, as root: RUN iptables-wrapper install"
	runReset   = "run: iptables-wrapper reset"
	runSelect  = "run: iptables-wrapper select --mode {}"
	waitSelect = "if kubelet is still starting, run: iptables-wrapper select --wait 2m"
	hostNet    = "if its rules are for the node, set hostNetwork: true in the Pod's spec (docker run --network host)"
	unset      = "unset {variable} in the container's environment"
	load       = "on the host, run: modprobe -a "

	uncertain = "the host's backend is not certain: {}"
	chose     = "this container chose {} before the host showed what it uses, and the rules found may be its own"
	noEffect  = "{variable}={} has no effect: "
	resolves  = noEffect + "iptables already resolves to {program}"
	strangers = "process 1 is not this container's (hostPID, shareProcessNamespace), or cannot be inspected"
	noLock    = "iptables-legacy cannot lock its tables: {}"
	differs   = "iptables in this container is {here}, but the host uses {host} ({because}). Rules written here have no effect on what the host evaluates with {host}."
)

// sight has the reasons why the host's backend is not certain, that nearest to the root first.
func (r *Report) sight() []Finding {
	netAdmin, doubt := r.has("CAP_NET_ADMIN"), r.doubt()
	missing := "CAP_NET_ADMIN and CAP_NET_RAW are missing"
	if r.has("CAP_NET_RAW") {
		missing = "CAP_NET_ADMIN is missing"
	}
	remembers := where(r.Host.Reason == detect.Remembered && doubt != "", r.Remembered)
	features, modules := r.refused()
	return []Finding{
		{Problem, where(!netAdmin && !r.wrapperCaps, strings.Join(r.fileCaps, ", ")),
			"the programs have file capabilities that the wrapper's file lacks, so the wrapper cannot inspect the host: {}", inTheImage},
		{Problem, where(!netAdmin, missing), "{}: iptables can neither read nor change rules",
			"add NET_ADMIN and NET_RAW to securityContext.capabilities of the container (docker run --cap-add=NET_ADMIN --cap-add=NET_RAW)"},
		{Problem, r.failed(unix.EPERM),
			"this process has CAP_NET_ADMIN, but not over this network namespace, which belongs to another user namespace",
			"run the container without a user namespace (hostUsers: true), or give it a network namespace of its own"},
		{Warning, r.failure(unix.EACCES), uncertain, "run as root or with group 0, or add CAP_DAC_READ_SEARCH"},
		{Warning, r.failure(unix.ENOENT), uncertain, "mount /proc in this container"},
		{Warning, r.failure(nil), uncertain, "see the kernel's log on the host (dmesg); iptables-wrapper doctor --all shows each error"},
		{Problem, r.foreignChains(), "{}: iptables-nft can neither list nor change such a table", moveChain},
		{Warning, where(r.Network.Own, remembers), chose + "; " + here.PodNetwork, hostNet},
		{Warning, remembers, chose, waitSelect},
		{Warning, where(r.Network.Own && r.Host.Reason == detect.Default, doubt), "found neither a kubelet chain nor any rule: " + here.PodNetwork, hostNet},
		// Nothing else speaks for legacy.
		{Warning, where(r.Host.Reason == detect.OnlySupported && r.Here.How == here.EachCall, features),
			"iptables here uses legacy only because iptables-nft cannot add {}", "if the host's other programs use nft, " + load + modules},
		{Warning, doubt, "{}", waitSelect},
	}
}

// backend has the reasons why iptables here is not what the host uses, that nearest to the root first.
func (r *Report) backend() []Finding {
	now := r.Here
	byMode := map[detect.Mode]string{}
	for _, n := range r.Names {
		byMode[n.Mode] += n.Name + " "
	}
	mixed := byMode[detect.NFT] + "is nft, " + byMode[detect.Legacy] + "is legacy"
	// The variable says one thing, and the name does not point to the wrapper, which would obey it.
	idle := where(!r.distrusted && now.How != here.Variable && now.How != here.Missing && now.Backend != r.Variable, r.Variable)
	return []Finding{
		{Problem, where(byMode[detect.NFT] != "" && byMode[detect.Legacy] != "", mixed), "some iptables commands run nft and others legacy: {}", runReset},
		{Problem, r.differsBy(here.Variable), "{variable} is {here}, but the host uses {host} ({because})", unset},
		{Problem, r.differsBy(here.Switch), differs, runReset + " (or delete the Pod)"},
		{Problem, r.differsBy(here.Remembered), differs + " This container remembers {here} from an earlier call",
			runReset + ", and restart the program that writes rules (or delete the Pod)"},
		{Problem, r.differsBy(here.NotWrapped), differs + " iptables was never put behind the wrapper", addInstall},
		{Warning, where(now.How == here.NotWrapped, now.Backend),
			"iptables here is always {here}, whatever the host uses: it was never put behind the wrapper", addInstall},
		{Warning, where(r.Host.Conclusive && now.Backend == r.Host.Mode, idle), resolves, unset},
		{Warning, idle, resolves, runSelect},
		{Warning, where(r.distrusted && now.How != here.Missing && now.Backend != r.Variable, r.Variable),
			noEffect + "the wrapper's file is set-user-ID or set-group-ID", "as root, " + runSelect},
		// The variable decides here, and where it is not passed on the answer is another.
		{Warning, where(now.How == here.Variable && r.Variable != r.Host.Mode, r.Variable),
			"{variable}={} is not passed on by programs that clear the environment, such as firewalld, openvpn and sudo: iptables started by them detects the mode", runSelect},
	}
}

// others are independent of each other.
func (r *Report) others() []Finding {
	nft, legacy := r.wanted() == detect.NFT, r.wanted() == detect.Legacy
	noneFound, broken, foreign := r.names()
	features, featureModules := r.refused()
	missing, aliases := r.missingExtensions()
	supportModules := map[bool]string{true: "nf_tables nft_compat", false: "iptable_filter ip6table_filter"}[nft]
	cut := r.cutOff()
	denied := r.user != 0 && errors.Is(r.lock, unix.EACCES)
	stored := r.Here.How == here.Switch || r.Here.How == here.NotWrapped
	drifts := r.strangers && !stored && r.failure(unix.EACCES) == "" && !r.blind()
	return []Finding{
		{Problem, where(cut, noneFound), "none of the six iptables commands was found: {}", runReset},
		{Problem, where(!cut, noneFound), "none of the six iptables commands was found: {}", runInstall},
		{Warning, broken, "broken: {}", runInstall},
		{Warning, foreign, "{}, a program that is neither this wrapper nor part of iptables", "if the wrapper should replace it, run: iptables-wrapper install --force"},
		{Warning, where(r.Network.Process1 != detect.No, strings.Join(r.bypasses, ", ")),
			"these paths run {other} and bypass the wrapper, but the host uses {host}: {}",
			"remove them if their directory comes first in PATH or something else runs them; what else helps: iptables-wrapper doctor --dir DIRECTORY"},
		{Problem, r.programError(true), "no usable {here} iptables in this image: {}", bothModes},
		{Warning, r.programError(false), "on a host that uses the other backend, iptables would not run here: {}", bothModes},
		{Warning, r.versionsDiffer(), "the programs are of different versions: {}", "install both from one package"},
		{Warning, where(r.has("CAP_NET_ADMIN") || r.wrapperCaps, strings.Join(r.fileCaps, ", ")), "file capabilities differ from those of the wrapper's file: {}", inTheImage},
		{Warning, strings.Join(r.lostCaps, ", "), "the wrapper's file has file capabilities that these programs lack: {}",
			"in the image, as root, give them back to each program: setcap cap_net_admin,cap_net_raw+ep PROGRAM; then run: iptables-wrapper install"},
		{Problem, string(r.unsupported()), "the mode is {}, but this kernel does not support it", load + supportModules},
		{Problem, where(nft, features), "iptables-nft cannot add {}: this kernel's nf_tables lacks a part", load + featureModules},
		{Problem, where(legacy && !r.blind() && !r.has("CAP_NET_RAW"), "CAP_NET_RAW"), "{} is missing; it is needed for iptables-legacy",
			"add NET_RAW to securityContext.capabilities of the container (docker run --cap-add=NET_RAW)"},
		{Problem, where(legacy && denied, errorText(r.lock)), noLock,
			"run as root, or set XTABLES_LOCKFILE to a file that this user can write (it does not lock out the host's programs)"},
		{Problem, where(legacy && !denied, errorText(r.lock)), noLock, "docker run --tmpfs /run, or mount the host's /run/xtables.lock (type FileOrCreate)"},
		{Problem, where(nft && r.foreignChains() == "", strings.Join(r.Unreadable, "; ")), "iptables-nft cannot list all of its tables: {}", moveChain},
		{Problem, where(nft && !r.blind(), strings.Join(r.unlisted, "; ")), "iptables-nft cannot list its tables: {}",
			"run: iptables-nft-save, to see whether it fails again; a memory limit of the container, or the kernel's log on the host (dmesg), may say why"},
		{Warning, r.conflict(), "{}", "reboot the node, or delete the chains and rules left over from the old mode"},
		{Warning, where(!r.Here.Differs, r.strayRules()), "the other backend has rules too: {}. They are active, but iptables here does not list them",
			"find out what creates them and switch it to {host}; list them with: iptables-{other}-save"},
		{Warning, missing, "the kernel lacks these iptables extensions: {}", "if something here needs them, " + load + aliases},
		{Warning, where(drifts && r.Here.How != here.Variable, errorText(r.fixed)),
			"the backend can change while this container runs: its links cannot be changed ({}), and nothing is remembered because " + strangers,
			"set {variable} to {host}, or mount a writable directory, run iptables-wrapper select --dir DIRECTORY when the container starts, and put it first in PATH"},
		{Warning, where(drifts && r.fixed == nil, strangers),
			"nothing is stored or remembered, so the backend can change while this container runs: {}", "run this when the container starts: iptables-wrapper select"},
		{Warning, where(r.fixed != nil && !r.strangers && !stored, errorText(r.forgetful)),
			"the backend can change while this container runs: its links cannot be changed, and nothing can be remembered: {}", tmpfs},
		{Note, where(r.forgetful == nil && r.Here.How != here.NotWrapped && !drifts, errorText(r.fixed)),
			"the links cannot be changed ({}), so every call detects the mode again", "no action needed: each call takes a few milliseconds longer"},
	}
}
