// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

var backendSituations = []situation{
	{
		"an invalid variable",
		func(r *Report) { r.badVariable = "nf_tables" },
		[]string{`problem bad-variable, pod -> IPTABLES_WRAPPER_MODE is "nf_tables"`},
	},
	{
		"an invalid variable, which nothing reads",
		func(r *Report) { r.badVariable, r.Here.How = "nf_tables", here.Switch },
		[]string{"warning bad-variable, pod -> set IPTABLES_WRAPPER_MODE to nft or legacy"},
	},
	{
		"a diverted name",
		func(r *Report) {
			r.Here = here.Here{Program: "/usr/sbin/iptables", How: here.NotWrapped}
			r.misnamed = true
		},
		[]string{"problem misnamed, image -> RUN iptables-wrapper install --force"},
	},
	{
		"file capabilities without effect",
		func(r *Report) {
			unknownBecause(0, unix.EPERM)(r)
			r.Capabilities, r.user = nil, 65534
			r.wrapperCaps, r.noNewRights = true, true
		},
		[]string{"problem no-new-privileges, pod -> set allowPrivilegeEscalation: true"},
	},
	{
		"a mesh's own rules",
		func(r *Report) {
			unknown(r)
			r.Host.Reason, r.Host.Conclusive = detect.RuleCount, true
			r.Network.Own = true
			rules(0, 3, "ISTIO_INBOUND", "ISTIO_OUTPUT")(r)
		},
		[]string{"warning pod-network, pod -> the only rules here are of this network's own programs"},
	},
	{
		"rules of others beside a mesh's",
		func(r *Report) {
			unknown(r)
			r.Host.Reason, r.Host.Conclusive = detect.RuleCount, true
			r.Network.Own = true
			rules(0, 3, "ISTIO_INBOUND", "DOCKER-USER")(r)
		},
		nil,
	},
	{"healthy", func(*Report) {}, nil},
	{
		"nothing on the host",
		unknown,
		[]string{"warning no-evidence, pod -> found neither a kubelet chain nor any rule in this network namespace"},
	},
	{
		"nothing in the Pod's own network",
		func(r *Report) {
			unknown(r)
			r.Network.Own = true
		},
		[]string{"warning pod-network, pod -> hostNetwork: true"},
	},
	{"no NET_ADMIN", func(r *Report) {
		unknownBecause(0, unix.EPERM)(r)
		r.Capabilities = []string{netRaw}
		r.Programs[1].Error = "getsockopt failed strangely"
	}, []string{"problem no-net-admin, pod -> add NET_ADMIN"}},
	{"no capability", func(r *Report) {
		unknownBecause(0, unix.EPERM)(r)
		r.Capabilities = nil
	}, []string{"problem no-net-admin, pod -> add NET_ADMIN"}},
	{
		"another user namespace",
		func(r *Report) {
			unknownBecause(1, unix.EPERM)(r)
			r.userNamespace = true
			r.Programs[0].Error = "permission denied" // a consequence, and no finding of its own
		},
		[]string{"problem another-user-namespace, pod -> hostUsers: true"},
	},
	{"seccomp", unknownBecause(1, unix.EPERM), []string{"problem blocked, pod -> seccompProfile"}},
	{"no netlink", unknownBecause(0, unix.EAFNOSUPPORT), []string{"problem blocked, pod -> netlink"}},
	{"not root", func(r *Report) {
		unknownBecause(2, unix.EACCES)(r)
		r.lock, r.otherProcess1 = unix.EACCES, true
	}, []string{"warning not-root, pod -> not certain"}},
	{"no /proc", unknownBecause(2, unix.ENOENT), []string{"warning no-proc, pod -> mount /proc"}},
	{"a kernel error", unknownBecause(2, unix.EIO), []string{"warning kernel-error, node -> dmesg"}},
	{"native nft tables", func(r *Report) {
		unknown(r)
		r.Host.Evidence[0].Foreign = []detect.Chain{{Table: "filter", Name: "mine"}}
		r.Unreadable = []string{"Table `filter'"}
	}, []string{"problem foreign-chain, node -> which is not iptables' own"}},
	{"a memory of a guess", func(r *Report) {
		unknown(r)
		r.Host.Reason, r.Here.How = detect.Remembered, here.Remembered
	}, []string{"warning guess, pod -> chose nft before the host showed what it uses"}},
	{"a memory of a guess in the Pod's own network", func(r *Report) {
		unknown(r)
		r.Host.Reason, r.Here.How, r.Network.Own = detect.Remembered, here.Remembered, true
	}, []string{"warning pod-network, pod -> hostNetwork: true"}},
	{"select --mode", func(r *Report) {
		unknown(r)
		r.Host.Reason, r.Host.Remembered = detect.Remembered, &detect.Memory{Reason: detect.Override}
		r.Here.How = here.Switch
	}, nil},
	{"the programs have capabilities", func(r *Report) {
		unknownBecause(0, unix.EPERM)(r)
		r.Capabilities = nil
		r.fileCaps = []string{"/p/xtables-nft-multi"}
	}, []string{"problem wrapper-lacks-file-capabilities, image -> RUN iptables-wrapper install"}},
	{"other capabilities", func(r *Report) { r.fileCaps = []string{"/p/xtables-nft-multi"} },
		[]string{"warning file-capabilities-differ, image -> RUN iptables-wrapper install"}},

	{
		"the programs lost their capabilities",
		func(r *Report) { r.fileCaps, r.wrapperCaps = []string{"/p/xtables-nft-multi"}, true },
		[]string{"warning file-capabilities-differ, image -> setcap"},
	},

	{"the right variable", func(r *Report) { r.Variable, r.Here.How = detect.Legacy, here.Variable }, nil},
	{"the wrong variable", func(r *Report) { wrong(here.Variable)(r); r.Variable = detect.NFT },
		[]string{"problem wrong-variable, pod -> IPTABLES_WRAPPER_MODE is nft, but the host uses legacy"}},
	{
		"the variable where nothing is certain",
		func(r *Report) {
			unknown(r)
			r.Variable, r.Here.How = detect.NFT, here.Variable
		},
		nil,
	},
	{"the variable comes too late", func(r *Report) {
		unknown(r)
		r.Host.Reason, r.Host.Remembered = detect.Remembered, &detect.Memory{}
		r.Here.How, r.Variable = here.Switch, detect.Legacy
	}, []string{"warning idle-variable, container -> select --mode legacy"}},
	{
		"the variable comes too late, and nothing can be changed here",
		func(r *Report) {
			unknown(r)
			r.Host.Reason, r.Host.Remembered = detect.Remembered, &detect.Memory{}
			r.Here.How, r.Variable = here.Switch, detect.Legacy
			r.unwritable = unix.EROFS
		},
		[]string{"warning idle-variable, pod -> IPTABLES_WRAPPER_MODE=legacy has no effect"},
	},
	{"the variable comes too late, and is wrong", func(r *Report) { r.Here.How, r.Variable = here.Switch, detect.NFT },
		[]string{"warning idle-variable, pod -> IPTABLES_WRAPPER_MODE=nft has no effect"}},
	{"the variable, set-user-ID", func(r *Report) { r.distrusted, r.Variable = true, detect.NFT }, nil},
	{"the wrong backend is stored", wrong(here.Switch), []string{"problem wrong-backend-stored, container"}},
	{
		"and left rules there",
		func(r *Report) {
			wrong(here.Switch)(r)
			rules(0, 3)(r)
		},
		[]string{"problem wrong-backend-stored, container -> reset"},
	},
	{
		"the wrong backend is remembered",
		wrong(here.Remembered),
		[]string{"problem wrong-backend-remembered, container -> This container remembers nft"},
	},
	{
		"and it is root's memory",
		func(r *Report) {
			wrong(here.Remembered)(r)
			r.noMemory = unix.EACCES
		},
		[]string{"problem wrong-backend-remembered, pod"},
	},
	{
		"and somebody else's program is among the commands, so that reset refuses",
		func(r *Report) {
			wrong(here.Remembered)(r)
			r.notOurs = unix.EEXIST
		},
		[]string{"problem wrong-backend-remembered, pod"},
	},
	{
		"the wrong backend is in the image",
		func(r *Report) {
			wrong(here.Switch)(r)
			r.inImage = true
		},
		[]string{"problem wrong-backend-stored, image -> RUN iptables-wrapper reset"},
	},
	{
		"and another program is in the way",
		func(r *Report) {
			wrong(here.Switch)(r)
			r.inImage, r.notOurs = true, unix.EEXIST
		},
		[]string{"problem wrong-backend-stored, image -> RUN iptables-wrapper install --force"},
	},
	{
		"the wrong backend is in a volume",
		func(r *Report) { wrong(here.Switch)(r); r.inVolume, r.unwritable = true, unix.EROFS },
		[]string{"problem wrong-backend-stored, pod -> this volume is filled again"},
	},
	{
		"the wrong backend is stored, and read-only",
		func(r *Report) {
			wrong(here.Switch)(r)
			r.unwritable = unix.EROFS
		},
		[]string{"problem wrong-backend-stored, pod -> delete the Pod"},
	},
	{"a backend is stored, and nothing is on the host", func(r *Report) { unknown(r); r.Here.How = here.Switch },
		[]string{"warning stored-without-evidence, container -> select --mode nft"}},
	{"a script", func(r *Report) {
		r.Here = here.Here{Program: "/usr/local/sbin/iptables", How: here.NotWrapped}
		r.Names[0] = layout.Status{Name: "iptables", ResolvesTo: "/usr/local/sbin/iptables"}
		r.dirArgument = " --dir /usr/local/sbin"
	}, []string{"warning not-wrapped, image -> RUN iptables-wrapper install --dir /usr/local/sbin --force"}},
	{"a script in a directory of others that is read-only", func(r *Report) {
		r.Here = here.Here{Program: "/p/iptables", How: here.NotWrapped}
		r.Names[0] = layout.Status{Name: "iptables"}
		r.exposed = true
	}, []string{"warning not-wrapped, pod -> out of PATH"}},
	{"a script that runs the right backend", func(r *Report) {
		r.Here.How, r.Names[0] = here.NotWrapped, layout.Status{Name: "iptables", ResolvesTo: "/usr/sbin/iptables"}
	}, []string{"warning not-wrapped, image -> RUN iptables-wrapper install --force"}},
	{"a directory of somebody else", func(r *Report) {
		r.Client, r.openPath = "/tmp/iptables", "/tmp"
		r.exposed = true
	},
		[]string{"warning open-directory, pod -> \"/tmp/iptables\", which PATH finds first, by changing \"/tmp\""}},
	{"a name that forges a line", func(r *Report) { r.unstarted = []exposure{{"/p/a\nRUN false", "/p/a\nRUN false"}} },
		[]string{`warning open-directory, image -> RUN chown -h root:root "$(printf '\057\160\057\141\012`}},
	{
		"a volume over the commands",
		func(r *Report) {
			r.absent, r.Here = []string{"iptables"}, here.Here{How: here.Missing}
			r.Names = []layout.Status{{Name: "iptables", Error: "gone"}}
			r.Programs = nil
			r.covered = "/usr/sbin"
		},
		[]string{"problem no-commands, pod -> remove the volume that is mounted over /usr/sbin"},
	},
	{
		"an image without iptables",
		func(r *Report) {
			r.absent, r.Here = []string{"iptables"}, here.Here{How: here.Missing}
			r.Names = []layout.Status{{Name: "iptables", Error: "gone"}}
			r.Programs = []Program{{Mode: detect.NFT, Error: "gone"}, {Mode: detect.Legacy, Error: "gone"}}
		},
		[]string{"problem no-commands, image -> install iptables 1.8.8 or newer with both backends; then add, as root"},
	},
	{"no iptables at all", func(r *Report) {
		r.onlyWrapper = true
		r.absent, r.Here = []string{"iptables"}, here.Here{How: here.Missing}
		r.Names = []layout.Status{{Name: "iptables", Error: "gone"}}
		r.Programs = []Program{{Mode: detect.NFT, Error: "gone"}, {Mode: detect.Legacy, Error: "gone"}}
	}, nil},
	{
		"the lock is held",
		func(r *Report) { r.holder = "process 7 (sleep) holds /run/xtables.lock" },
		[]string{"problem lock-held, node -> process 7 (sleep) holds"},
	},
	{
		"never installed",
		wrong(here.NotWrapped),
		[]string{"problem wrong-backend-not-wrapped, image -> never put behind the wrapper"},
	},
	{
		"never installed, and right",
		func(r *Report) { r.Here.How, r.Names[0].Mode = here.NotWrapped, detect.Legacy },
		[]string{"warning not-wrapped, image -> is always /p/xtables-legacy-multi, whatever the host uses"},
	},
	{
		"a stored backend, in the namespace of another container",
		func(r *Report) {
			wrong(here.Switch)(r)
			r.Network.Process1 = detect.No
		},
		nil,
	},
}
