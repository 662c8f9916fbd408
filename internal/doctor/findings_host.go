// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// Texts that several rules share.
const (
	uncertain = "the host's backend is not certain: {}"
	differs   = "iptables in this container runs {here}, but the host uses {host} ({because}). " +
		"A DROP here still drops; an ACCEPT here overrides nothing in {host}, and neither backend lists the " +
		"other's rules."
	drifts = "the backend can change while this container runs, because nothing is stored or remembered: {}"

	hostNet = "set hostNetwork: true (docker run --network host) if this container's rules are for the node, " +
		"or {variable} if they are for its own network"
	decide = "set {variable} to the backend of the host's other programs. If kubelet is still starting, wait: its " +
		"chains will decide. On the node, this shows the backend:\niptables --version"
	unset     = "remove {variable}"
	leaveOut  = "take the directory of {client} out of PATH: users other than root can write there"
	renew     = "delete the Pod: a new container decides again"
	moveChain = "have the program that uses nft directly put its chains into a table with a name of its own. " +
		"To see them:\nnft list ruleset"
	load          = "load the modules:\nmodprobe -a "
	nftModules    = "nf_tables nft_chain_nat nft_compat xt_comment"
	legacyModules = "iptable_filter ip6table_filter"
	bothModes     = "install iptables 1.8.8 or newer with both backends"
	runSelect     = "run:\niptables-wrapper select{dir} --mode "
	buildWith     = "add, as root:\nRUN iptables-wrapper install{dir}"
	buildBoth     = bothModes + "; then " + buildWith
)

// hostRules are about the host's backend not being certain, the root cause first.
func (r *Report) hostRules() []rule {
	doubt := r.doubt()
	denied := r.failed(unix.EPERM)
	fileCaps := r.wrapperCaps || len(r.fileCaps) > 0
	return []rule{
		{
			code:     "no-new-privileges",
			severity: Problem,
			detail:   when(!r.has(netAdmin) && r.user != 0 && r.noNewRights && fileCaps, netAdmin),
			text: "{} is missing: the programs have it as a file capability, which has no effect " +
				"where a process may get no new privileges",
			fixes: only(Pod, "set allowPrivilegeEscalation: true (docker run without --security-opt "+
				"no-new-privileges)"),
		},
		{
			code:     "wrapper-lacks-file-capabilities",
			severity: Problem,
			detail:   when(!r.has(netAdmin) && !r.wrapperCaps, strings.Join(r.fileCaps, ", ")),
			text: "the programs have file capabilities that the wrapper's file lacks, " +
				"so the wrapper cannot inspect the host: {}",
			fixes: only(Image, buildWith),
		},
		{
			code:     "no-net-admin",
			severity: Problem,
			detail:   when(!r.has(netAdmin), netAdmin),
			text:     "{} is missing: iptables can neither read nor change rules",
			fixes:    r.add(),
		},
		{
			code:     "blocked",
			severity: Problem,
			detail:   cmp.Or(when(!r.userNamespace, denied), r.failed(unix.EAFNOSUPPORT)),
			text:     "{}, although CAP_NET_ADMIN is there: seccomp or a security module forbids the system call",
			fixes: only(Pod, "use a seccompProfile that permits netlink sockets and getsockopt, as "+
				"RuntimeDefault does"),
		},
		{
			code:     "another-user-namespace",
			severity: Problem,
			detail:   denied,
			text: "this process has CAP_NET_ADMIN, but not over this network namespace, " +
				"which belongs to another user namespace",
			fixes: only(Pod, "run the container without a user namespace (hostUsers: true), "+
				"or give it a network namespace of its own"),
		},
		{
			code:     "not-root",
			severity: Warning,
			detail:   r.doubtBy(unix.EACCES),
			text:     uncertain,
			fixes: only(Pod, "run the container as root or with group 0 (runAsGroup: 0), or add "+
				"CAP_DAC_READ_SEARCH"),
		},
		{
			code:     "no-proc",
			severity: Warning,
			detail:   r.doubtBy(unix.ENOENT),
			text:     uncertain,
			fixes:    only(Pod, "mount /proc in this container"),
		},
		{
			code:     "kernel-error",
			severity: Warning,
			detail:   r.doubtBy(nil),
			text:     uncertain,
			fixes:    only(Node, "see the kernel's log (dmesg); iptables-wrapper doctor --all shows each error"),
		},
		{
			code:     "foreign-chain",
			severity: Problem,
			detail:   r.foreignChains(),
			text:     "{}: iptables-nft lists such a table in part or not at all",
			fixes:    only(Node, moveChain),
		},
		{
			code:     "host-programs-in-both",
			severity: Warning,
			detail:   r.programsInBoth(),
			text:     "programs of the host keep rules in both backends: {}. Each backend lists only its own rules",
			fixes: only(Node, "have these programs use the same iptables, restart those that change, and remove what "+
				"they leave behind. To see what is there:"+r.showPrograms()),
		},
		{
			code:     "pod-network",
			severity: Warning,
			detail:   r.podNetwork(),
			text:     "{}: " + here.PodNetwork,
			fixes:    only(Pod, hostNet),
		},
		{
			code:     "guess",
			severity: Warning,
			detail:   when(r.Host.Reason == detect.Remembered && doubt != "", r.Host.Mode),
			text:     "this container chose {} before the host showed what it uses, and the rules found may be its own",
			fixes:    only(Pod, decide),
		},
		{
			code:     "only-legacy-works", // and nothing else speaks for legacy
			severity: Warning,
			detail:   when(r.Host.Reason == detect.OnlySupported && r.Here.How == here.EachCall, r.refused()),
			text:     "iptables here uses legacy only because iptables-nft cannot add {}",
			fixes:    only(Node, "if the host's other programs use nft, "+load+nftModules),
		},
		{
			code:     "stored-without-evidence",
			severity: Warning,
			detail:   when(r.Here.How == here.Switch, doubt),
			text:     "{here} is stored, but {}",
			fixes:    r.confirm(),
		},
		{
			code:     "no-evidence",
			severity: Warning,
			detail:   doubt,
			text:     "{}",
			fixes:    only(Pod, decide),
		},
	}
}

// add is what gives this user the capabilities.
func (r *Report) add() fixes {
	return fixes{
		{
			r.user == 0 || r.wrapperCaps, Pod,
			"add NET_ADMIN and NET_RAW to securityContext.capabilities of the container " +
				"(docker run --cap-add=NET_ADMIN --cap-add=NET_RAW)",
		},
		{
			always, Pod,
			"run the container as root with NET_ADMIN and NET_RAW: Kubernetes gives them to no other user. " +
				"images/nonroot has file capabilities instead",
		},
	}
}

// confirm has somebody decide for the backend that is stored, or has it removed where it came from.
func (r *Report) confirm() fixes {
	unknownOrigin := r.otherProcess1 && !r.inImage && !r.inVolume
	variable := fix{unknownOrigin, Pod, "if {here} is right, set {variable}={here}"}
	selectHere := "if {here} is right, " + runSelect + "{here}"
	return append(fixes{variable}, r.restore(r.movable() && !r.otherProcess1, selectHere)...)
}
