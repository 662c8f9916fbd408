// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// Texts that several rules share.
const (
	uncertain = "the host's backend is not certain: {}"
	differs   = "iptables in this container runs {here}, but the host uses {host} ({because}). A DROP here still drops; an ACCEPT here " +
		"overrides nothing in {host}, and neither backend lists the other's rules."
	drifts = "the backend can change while this container runs, because nothing is stored or remembered: {}"

	hostNet    = "set hostNetwork: true (docker run --network host) if its rules are for the node, and {variable} if they are for this network"
	decide     = "set {variable} to the backend of the host's other programs, unless kubelet is still starting, whose chains will decide"
	unset      = "remove {variable}"
	leaveOut   = "take the directory of {client} out of PATH: others than root can write there"
	renew      = "delete the Pod: a new container decides again"
	moveChain  = "have the program that uses nft directly put its chains into a table with a name of its own. To see them:\nnft list ruleset"
	load       = "load the modules:\nmodprobe -a "
	nftModules = "nf_tables nft_chain_nat nft_compat xt_comment"
	bothModes  = "install iptables 1.8.4 or newer with both backends"
	runSelect  = "run:\niptables-wrapper select{dir} --mode "
	buildWith  = "add, as root:\nRUN iptables-wrapper install{dir}"
	buildBoth  = bothModes + "; then " + buildWith
)

// host has the reasons why the host's backend is not certain, that nearest to the root first.
func (r *Report) host() []rule {
	admin, doubt, denied := r.has(netAdmin), r.doubt(), r.failed(unix.EPERM)
	return []rule{
		{"wrapper-lacks-file-capabilities", Problem, when(!admin && !r.wrapperCaps, strings.Join(r.fileCaps, ", ")),
			"the programs have file capabilities that the wrapper's file lacks, so the wrapper cannot inspect the host: {}", only(Image, buildWith)},
		{"no-net-admin", Problem, when(!admin, netAdmin), "{} is missing: iptables can neither read nor change rules", r.add()},
		{"blocked", Problem, cmp.Or(when(!r.userNamespace, denied), r.failed(unix.EAFNOSUPPORT)),
			"{}, although CAP_NET_ADMIN is there: seccomp or a security module forbids the question",
			only(Pod, "use a seccompProfile that permits netlink sockets and getsockopt, as RuntimeDefault does")},
		{"another-user-namespace", Problem, denied,
			"this process has CAP_NET_ADMIN, but not over this network namespace, which belongs to another user namespace",
			only(Pod, "run the container without a user namespace (hostUsers: true), or give it a network namespace of its own")},
		{"not-root", Warning, r.failure(unix.EACCES), uncertain, only(Pod, "run the container as root or with group 0 (runAsGroup: 0), or add CAP_DAC_READ_SEARCH")},
		{"no-proc", Warning, r.failure(unix.ENOENT), uncertain, only(Pod, "mount /proc in this container")},
		{"kernel-error", Warning, r.failure(nil), uncertain, only(Node, "see the kernel's log (dmesg); iptables-wrapper doctor --all shows each error")},
		{"foreign-chain", Problem, r.foreignChains(), "{}: iptables-nft can neither list nor change such a table", only(Node, moveChain)},
		{"pod-network", Warning, when(r.Network.Own && (r.Host.Reason == detect.Default || r.Host.Reason == detect.Remembered), doubt),
			"{}: " + here.PodNetwork, only(Pod, hostNet)},
		{"guess", Warning, when(r.Host.Reason == detect.Remembered && doubt != "", r.Host.Mode),
			"this container chose {} before the host showed what it uses, and the rules found may be its own", only(Pod, decide)},
		// Nothing else speaks for legacy.
		{"only-legacy-works", Warning, when(r.Host.Reason == detect.OnlySupported && r.Here.How == here.EachCall, r.refused()),
			"iptables here uses legacy only because iptables-nft cannot add {}", only(Node, "if the host's other programs use nft, "+load+nftModules)},
		{"stored-without-evidence", Warning, when(r.Here.How == here.Switch, doubt), "{here} is stored, but {}",
			append(fixes{{r.strangers && !r.image && !r.volume, Pod, "if {here} is right, set {variable}={here}"}},
				r.restore(r.movable() && !r.strangers, "if {here} is right, "+runSelect+"{here}")...)},
		{"no-evidence", Warning, doubt, "{}", only(Pod, decide)},
	}
}

// backend has the reasons why iptables here is not what the host uses, that nearest to the root first.
func (r *Report) backend() []rule {
	now := r.Here
	// What install needs to replace somebody's own program, or a broken one.
	force := when(now.How == here.NotWrapped && r.Names[0].Mode == "" || now.How == here.Missing, " --force")
	restored := r.restore(r.movable(), "run:\niptables-wrapper reset{dir}")
	// The variable says one thing, and the command does not run the wrapper, which would obey it.
	idle := when(!r.distrusted && now.How != here.Variable && now.How != here.Missing && now.Backend != r.Variable, r.Variable)
	putBehind := fixes{{r.exposed, Pod, leaveOut}, {r.unusable(), Image, buildBoth + force}, {always, Image, buildWith + force}}
	return []rule{
		{"two-backends", Problem, r.mixed(), "some iptables commands run nft and others legacy: {}", restored},
		{"wrong-variable", Problem, r.differsBy(here.Variable), "{variable} is {here}, but the host uses {host} ({because})", only(Pod, unset)},
		{"wrong-backend-stored", Problem, r.differsBy(here.Switch), differs, restored},
		{"wrong-backend-remembered", Problem, r.differsBy(here.Remembered), differs + " This container remembers {here} from an earlier call", fixes{
			{r.forgetful == nil && r.claimed == nil, Container,
				"restart the program that writes rules, and before that run:\niptables-wrapper reset{dir}"},
			{always, Pod, renew}}},
		{"wrong-backend-not-wrapped", Problem, r.differsBy(here.NotWrapped), differs + " {program} was never put behind the wrapper", putBehind},
		{"not-wrapped", Warning, when(now.How == here.NotWrapped && (force == "" || now.Backend == ""), now.Program),
			"iptables here is always {}, whatever the host uses: it was never put behind the wrapper", putBehind},
		{"idle-variable", Warning, idle, "{variable}={} has no effect: iptables already resolves to {program}",
			fixes{{r.Host.Conclusive && now.Backend == r.Host.Mode || r.unusable() || !r.movable(), Pod, unset}, {always, Container, runSelect + "{}"}}},
	}
}

// others are independent of each other.
func (r *Report) others() []rule {
	nft, legacy := r.wanted() == detect.NFT, r.wanted() == detect.Legacy
	noneFound, broken := r.names()
	modules := map[bool]string{true: nftModules, false: "iptable_filter ip6table_filter"}[nft]
	rules, leftovers, removeLeftovers := r.other()
	changing := r.Here.How == here.EachCall && r.failure(unix.EACCES) == "" && !r.blind()
	return []rule{
		{"no-commands", Problem, noneFound, "none of the six iptables commands was found: {}", fixes{{r.unusable(), Image, buildBoth}, {always, Image, buildWith}}},
		{"broken-command", map[bool]string{true: Problem, false: Warning}[r.Here.How == here.Missing], broken, "broken: {}", only(Image, buildWith+" --force")},
		{"another-path", Warning, when(r.Network.Process1 != detect.No, strings.Join(r.bypasses, ", ")),
			"these paths run {other} and bypass the wrapper, but the host uses {host}: {}",
			only(Image, "remove them, unless nothing runs them:\nRUN rm "+strings.Join(r.bypasses, " "))},
		{
			code:     "open-directory",
			severity: Warning,
			detail:   r.replaceable(),
			text:     "others than root could replace what runs here, so doctor did not start it: {}",
			fixes: fixes{
				{r.exposed, Pod, leaveOut},
				{r.onlyFiles(), Image, "add, as root:" + own(r.exposures())},
				{always, Image, "keep iptables in a directory that only root can change"},
			},
		},
		{
			code:     "writable-wrapper",
			severity: Warning,
			detail:   quoted(r.rewritable),
			text:     "others than root can rewrite the wrapper, which root runs: {}",
			fixes:    only(Image, buildWith),
		},
		{"program-unusable", Problem, r.programError(true), "no usable iptables in this image for {}", only(Image, bothModes)},
		{"other-program-unusable", Warning, r.programError(false), "on a host that uses the other backend, iptables would not run here: no usable iptables for {}",
			only(Image, bothModes)},
		{"file-capabilities-differ", Warning, when(r.has(netAdmin) || r.wrapperCaps, strings.Join(r.fileCaps, ", ")),
			"file capabilities differ from those of the wrapper's file: {}",
			only(Image, "add, as root:\nRUN setcap cap_net_admin,cap_net_raw+ep "+r.Programs[0].Path+" "+r.Programs[1].Path+"\nRUN iptables-wrapper install{dir}")},
		{"kernel-lacks-backend", Problem, when(!r.blind() && r.lacks(r.wanted()), r.wanted()), "the backend is {}, but this kernel does not support it",
			only(Node, load+modules)},
		{"nft-cannot-add", Problem, when(nft, r.refused()), "iptables-nft cannot add {}: this kernel's nf_tables lacks a part", only(Node, load+nftModules)},
		{"no-net-raw", Problem, when(legacy && !r.blind() && !r.has(netRaw), netRaw), "{} is missing; it is needed for iptables-legacy", r.add()},
		{
			code:     "no-lock",
			severity: r.lockSeverity(),
			detail:   when(legacy && r.lock != nil, fmt.Sprint(r.lock)),
			text:     "iptables-legacy cannot lock its tables: {}",
			fixes: fixes{
				{r.user != 0 && errors.Is(r.lock, unix.EACCES), Pod,
					"run as root, or set XTABLES_LOCKFILE to a file that this user can write (it does not lock out the host's programs)"},
				{r.ownLock, Pod, "remove XTABLES_LOCKFILE, and mount the host's /run/xtables.lock (type: FileOrCreate)"},
				{r.lockKind() == directory, Node,
					"remove the directory, which a mount without type: FileOrCreate has made, and mount a file:\nrmdir " + defaultLock},
				{r.lockKind() != "", Node, "remove it; iptables-legacy creates a file:\nrm " + defaultLock},
				{always, Pod, "mount the host's /run/xtables.lock (type: FileOrCreate), or a writable /run (docker run --tmpfs /run)"},
			},
		},
		{"lock-held", Problem, r.holder, "iptables-legacy waits for a lock: {}",
			only(Node, "wait for that process, or end it. To see who holds the lock:\nlslocks")},
		{"unlisted-tables", Problem, when(nft && r.foreignChains() == "", strings.Join(r.Unreadable, "; ")), "iptables-nft cannot list all of its tables: {}",
			only(Node, moveChain)},
		{"listing-fails", Problem, when(nft && !r.blind(), strings.Join(r.unlisted, "; ")), "iptables-nft cannot list its tables: {}",
			only(Node, "a memory limit of the container, or the kernel's log (dmesg), may say why")},
		{"chains-in-both", Warning, when(!r.Here.Differs, leftovers), "both backends have these chains, as after a change of sides; those in {other} are left over: {}", fixes{
			{r.removable(), Container, "remove them:" + removeLeftovers},
			{always, Node, "remove them, or reboot:" + removeLeftovers}}},
		{"rules-in-both", Warning, when(!r.Here.Differs && leftovers == "", rules),
			"the other backend has rules too: {}. They are active, but iptables here does not list them",
			only(Node, "if the program that made them still runs, have it use {host}; if not, remove them. To see them:\niptables-{other}-save")},
		{"not-own-process-1", Warning, when(changing && r.strangers, "process 1 is not this container's (hostPID, shareProcessNamespace), or cannot be inspected"),
			drifts, fixes{
				{r.Host.Conclusive && r.movable() && !r.unusable(), Container, "when the container starts, run:\niptables-wrapper select{dir}"},
				{always, Pod, "set {variable}={host}"}}},
		{"no-memory", Warning, when(changing && !r.strangers && r.unwritable != nil && r.forgetful != nil, fmt.Sprint(r.forgetful)), drifts,
			only(Pod, "mount a tmpfs on /dev/shm (docker run --tmpfs /dev/shm; Kubernetes: an emptyDir with medium: Memory)")},
	}
}
