// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

var otherSituations = []situation{
	{
		"a conflict",
		func(r *Report) {
			r.Host.Evidence[1].Hint, r.Host.Evidence[3].Hint = detect.Yes, detect.Yes
			r.Host.Evidence[1].Tables = []detect.Table{{Name: "mangle", Chains: []string{detect.HintChain, "mine"}}}
		},
		[]string{"warning chains-in-both, container -> edits=$(ip6tables-nft-save -t mangle | " +
			"sed -E '/^-A (KUBE-IPTABLES-HINT) /d; s/^:(KUBE-IPTABLES-HINT) .*/-F \\1/; " +
			"s/^-A (.* -[jg] (KUBE-IPTABLES-HINT))$/-D \\1/; /^([:#]|-A )/d; s/^COMMIT/-X KUBE-IPTABLES-HINT\\n&/') " +
			"&& test -n \"$edits\" && printf '%s\\n' \"$edits\" | ip6tables-nft-restore -n"},
	},
	{
		"a program that changed sides",
		func(r *Report) {
			rules(0, 2, "DOCKER", "mine", "$(reboot)")(r)
			rules(2, 2, "DOCKER", "DOCKER-USER", "$(reboot)")(r)
			r.saved = parseSaved(detect.IPv4, "*nat\n:PREROUTING ACCEPT [0:0]\n:DOCKER - [0:0]\n-A PREROUTING -j "+
				"DOCKER\n")
			r.user = 65534
		},
		[]string{"warning chains-in-both, node -> sed -E '/^-A (DOCKER) /d; s/^:(DOCKER) .*/-F \\1/; " +
			"s/^-A (.* -[jg] (DOCKER))$/-D \\1/; /^([:#]|-A )/d; s/^COMMIT/-X DOCKER\\n&/') && " +
			"test -n \"$edits\" && printf '%s\\n' \"$edits\" | iptables-nft-restore -n"},
	},
	{
		"a program that changed sides, whose rules cannot be listed",
		func(r *Report) {
			rules(0, 2, "DOCKER")(r)
			rules(2, 2, "DOCKER")(r)
		},
		[]string{"warning chains-in-both, node -> with care: in nft ipv4 nat, other rules may need"},
	},
	{
		"a program that changed sides, where nothing is certain",
		func(r *Report) {
			rules(0, 2, "DOCKER")(r)
			rules(2, 2, "DOCKER")(r)
			r.Host.Reason, r.Host.Conclusive = detect.RuleCount, false
			r.Here.How, r.Variable = here.Variable, detect.Legacy
		},
		[]string{"warning rules-in-both, node -> rules too: 2 in nft ipv4 nat. They"},
	},
	{
		"a program that changed sides, and the lock is held",
		func(r *Report) {
			nftHost(r)
			rules(0, 2, "DOCKER")(r)
			rules(2, 2, "DOCKER")(r)
			r.saved = parseSaved(detect.IPv4, "*nat\n:DOCKER - [0:0]\n")
			r.holder = "process 7 (sleep) holds it"
		},
		[]string{"warning chains-in-both, node -> or reboot:\nedits=$(iptables-legacy-save -t nat"},
	},
	{
		"a program that changed sides, and PATH has no sbin",
		func(r *Report) {
			rules(0, 2, "DOCKER")(r)
			rules(2, 2, "DOCKER")(r)
			r.saved = parseSaved(detect.IPv4, "*nat\n:DOCKER - [0:0]\n")
			r.otherNotInPath = true
		},
		[]string{"warning chains-in-both, node -> or reboot:\nedits=$(iptables-nft-save -t nat"},
	},
	{
		"a chain that drops what the host's backend lets through",
		func(r *Report) {
			rules(0, 2, "DOCKER-USER")(r)
			rules(2, 0, "DOCKER-USER")(r)
			r.saved = parseSaved(detect.IPv4, "*nat\n:POSTROUTING DROP [0:0]\n:DOCKER-USER - [0:0]\n"+
				"-A POSTROUTING -j DOCKER-USER\n-A DOCKER-USER -s 192.0.2.1 -j DROP\n")
		},
		[]string{"warning chains-in-both, node -> have legacy drop what is to stay blocked: in nft ipv4 nat, rules"},
	},
	{
		"too many chains, and a policy of another table",
		func(r *Report) {
			chains := strings.Split(strings.Repeat("KUBE-ROUTER-POD-0123456789ABCDEF ", 1000)+"KUBE-X", " ")
			rules(0, 2, chains...)(r)
			rules(2, 0, chains...)(r)
			r.saved = parseSaved(detect.IPv4, "*nat\n:OUTPUT DROP [0:0]\n-A OUTPUT -j LOG\n-A OUTPUT -j KUBE-X\n"+
				"*filter\n:INPUT DROP [0:0]\n")
		},
		[]string{
			"warning chains-in-both, node -> in nft ipv4 nat, there are too many for one command. To see them:\n" +
				"iptables-nft-save -t nat",
			"warning rules-in-both, node -> too: policy DROP of INPUT in nft ipv4 filter. They",
		},
	},
	{
		"chains that do nothing, and rules and a policy beside them",
		func(r *Report) {
			rules(0, 2, "KUBE-X", "ts-input")(r)
			rules(2, 0, "KUBE-X")(r)
			r.saved = parseSaved(detect.IPv4, "*nat\n:OUTPUT DROP [0:0]\n-A OUTPUT -j LOG\n-A OUTPUT -j KUBE-X\n")
		},
		[]string{
			"warning chains-in-both, container -> remove them:\n",
			"warning rules-in-both, node -> " +
				"too: 1 in nft ipv4 nat, with chains ts-*, policy DROP of OUTPUT in nft ipv4 nat",
		},
	},
	{
		"iptables and ip6tables differ",
		func(r *Report) { r.Host.Evidence[1].Hint = detect.Yes },
		[]string{"problem families-differ, node -> the host uses legacy for IPv4 and nft for IPv6"},
	},
	{
		"a policy of the other backend",
		func(r *Report) {
			rules(0, 0)(r)
			r.saved = parseSaved(detect.IPv4, "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\nCOMMIT\n")
		},
		[]string{"warning rules-in-both, container -> everything pass there, unless somebody wants these policies:\n" +
			"iptables-nft -t filter -P FORWARD ACCEPT"},
	},
	{
		"a policy of the other backend, for another user",
		func(r *Report) {
			r.saved = parseSaved(detect.IPv4, "*filter\n:FORWARD DROP [0:0]\n")
			r.user = 65534
		},
		[]string{"warning rules-in-both, node -> policy DROP of FORWARD in nft ipv4 filter"},
	},
	{
		"a policy of the other backend, where nothing is certain",
		func(r *Report) {
			unknown(r)
			r.Variable, r.Here.How = detect.NFT, here.Variable
			r.saved = parseSaved(detect.IPv4, "*filter\n:INPUT DROP [0:0]\n")
		},
		[]string{"warning rules-in-both, node -> To see them:\niptables-legacy-save"},
	},
	{
		"a policy of the backend in use, where nothing is certain",
		func(r *Report) {
			unknown(r)
			r.Variable = detect.Legacy
			r.Here.Backend, r.Here.How = detect.Legacy, here.Variable
			r.saved = parseSaved(detect.IPv4, "*filter\n:INPUT DROP [0:0]\n")
		},
		nil,
	},
	{
		"a policy of the other backend, and rules",
		func(r *Report) {
			rules(0, 2)(r)
			r.saved = parseSaved(detect.IPv4, "*filter\n:FORWARD DROP [0:0]\n")
		},
		[]string{"warning rules-in-both, node -> 2 in nft ipv4 nat, policy DROP of FORWARD in nft ipv4 filter"},
	},
	{
		"rules of a program of the host in the other backend",
		func(r *Report) {
			rules(0, 3, "DOCKER-USER")(r)
			r.Host.Evidence[0].Programs = []detect.Program{{Name: "Docker", Table: "filter", Chain: "DOCKER-USER"}}
		},
		[]string{"warning rules-in-both, node -> 3 in nft ipv4 nat, made by Docker, with chains DOCKER-*"},
	},
	{
		"programs of the host in both, and kubelet",
		func(r *Report) {
			r.Host.Conflicts = []detect.Conflict{detect.HostProgramsInBoth}
			rules(0, 3, "ufw-user-input")(r)
			docker := detect.Program{Name: "Docker", Table: "filter", Chain: "DOCKER-USER"}
			r.Host.Evidence[0].Programs = []detect.Program{{Name: "firewalld", Table: "inet firewalld"}}
			r.Host.Evidence[1].Programs = r.Host.Evidence[0].Programs
			r.Host.Evidence[2].Programs = []detect.Program{docker}
		},
		[]string{"warning host-programs-in-both, node -> " +
			"firewalld in nft (table inet firewalld), Docker in legacy (chain DOCKER-USER in filter). Each backend " +
			"lists only its own ruleshave these programs use the same iptables, restart those that change, and " +
			"remove what they leave behind. To see what is there:\nnft list table inet firewalld\n" +
			"iptables-legacy-save -t filter"},
	},
	{
		"programs of the host in both, and a policy",
		func(r *Report) {
			r.Host.Conflicts = []detect.Conflict{detect.HostProgramsInBoth}
			r.Host.Evidence[0].Programs = []detect.Program{{Name: "ufw", Table: "filter", Chain: "ufw-user-input"}}
			rules(0, 3, "ufw-user-input")(r)
			r.saved = parseSaved(detect.IPv4, "*filter\n:FORWARD DROP [0:0]\n")
		},
		[]string{
			"warning host-programs-in-both, node -> To see what is there:\niptables-nft-save -t filter",
			"warning rules-in-both, node -> policy DROP of FORWARD in nft ipv4 filter",
		},
	},
	{
		"one program of the host in both, which changed sides",
		func(r *Report) {
			r.Host.Conflicts = []detect.Conflict{detect.HostProgramsInBoth}
			rules(0, 2, "DOCKER-USER")(r)
			rules(2, 2, "DOCKER-USER")(r)
			r.Host.Evidence[0].Programs = []detect.Program{{Name: "Docker", Table: "filter", Chain: "DOCKER-USER"}}
		},
		[]string{"warning chains-in-both, node"},
	},
	{
		"a table that somebody has made dormant, and kubelet",
		func(r *Report) {
			nftHost(r)
			r.Host.Evidence[0].Faults = []detect.Fault{{Kind: detect.FaultDormant, Table: "filter"}}
			r.Host.Evidence[1].Faults = []detect.Fault{{Kind: detect.FaultOwned, Table: "nat"}}
		},
		[]string{"problem faulty-table, node -> nft ipv4: table filter is dormant: iptables-nft can change it, but " +
			"nothing in it has an effect; nft ipv6: table nat belongs to a process"},
	},
	{
		"a table that somebody has made dormant, for IPv6",
		func(r *Report) {
			nftHost(r)
			r.Host.Evidence[0].Faults = []detect.Fault{{Kind: detect.FaultOwned, Table: "filter"}}
			r.Host.Evidence[1].Faults = []detect.Fault{{Kind: detect.FaultDormant, Table: "nat"}}
		},
		[]string{"problem faulty-table, node -> when \"nft add table ip6 nat\" wakes it. To see them:\n" +
			"nft list table ip6 nat"},
	},
	{
		"a chain without a hook",
		func(r *Report) {
			nftHost(r)
			r.Host.Evidence[0].Faults = []detect.Fault{{Kind: detect.FaultNotHooked, Table: "filter", Chain: "INPUT"}}
		},
		[]string{"problem faulty-table, node -> put its chains into a table with a name of its own"},
	},
	{
		"a dormant table, where the host uses legacy",
		func(r *Report) {
			r.Host.Evidence[0].Faults = []detect.Fault{{Kind: detect.FaultDormant, Table: "filter"}}
		},
		nil,
	},
	{
		"rules in the other backend",
		rules(1, 3, "DOCKER-USER", "KUBE-SERVICES", "mine"),
		[]string{"warning rules-in-both, node -> 3 in nft ipv6 nat, with chains DOCKER-*, KUBE-*"},
	},
	{
		"rules in the other backend, for IPv6 alone",
		rules(1, 3, "mine"),
		[]string{"warning rules-in-both, node -> To see them:\nip6tables-nft-save"},
	},
	{
		"rules in the other backend, for both",
		func(r *Report) {
			rules(0, 3)(r)
			rules(1, 3)(r)
		},
		[]string{"warning rules-in-both, node -> To see them:\niptables-nft-save\nip6tables-nft-save"},
	},
	{
		"rules in the other backend that may be of nft alone",
		func(r *Report) {
			rules(0, 0)(r)
			r.Host.Evidence[0].Tables[0].Rules.Max = 5
		},
		nil,
	},
	{"rules where they belong", rules(2, 3, "KUBE-SERVICES"), nil},
	{
		"hostPID",
		func(r *Report) { r.otherProcess1 = true },
		[]string{"warning not-own-process-1, container -> iptables-wrapper select"},
	},
	{"hostPID, after select", func(r *Report) { r.otherProcess1, r.Here.How = true, here.Switch }, nil},
	{"hostPID, and read-only", func(r *Report) { r.otherProcess1, r.unwritable = true, unix.EROFS },
		[]string{"warning not-own-process-1, pod"}},
	{"hostPID, read-only, and the variable", func(r *Report) {
		r.otherProcess1, r.unwritable, r.Variable, r.Here.How = true, unix.EROFS, detect.Legacy, here.Variable
	}, nil},
	{"read-only", func(r *Report) { r.unwritable = unix.EROFS }, nil},
	{
		"read-only, and no memory",
		func(r *Report) { r.unwritable, r.noMemory = unix.EROFS, errors.New("/dev/shm: gone") },
		[]string{"warning cannot-remember, pod -> mount a tmpfs on /dev/shm"},
	},
	{"not root, and somebody has decided", func(r *Report) {
		unknownBecause(2, unix.EACCES)(r)
		r.Variable, r.Here.How = detect.NFT, here.Variable
	}, []string{"warning not-root, pod -> not certain"}},
	{"several", func(r *Report) {
		r.unwritable, r.noMemory, r.lock = unix.EROFS, unix.EROFS, unix.EROFS
	}, []string{"problem no-lock, pod -> cannot lock", "warning cannot-remember, pod"}},
}
