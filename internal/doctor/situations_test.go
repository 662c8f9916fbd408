// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// healthy is a container on a legacy host in which nothing is wrong.
func healthy() Report {
	return Report{
		Host: detect.Result{
			Mode: detect.Legacy, Reason: detect.KubeletHint, Conclusive: true,
			Evidence: []detect.Evidence{
				{Backend: detect.NFT, Family: detect.IPv4, Supported: detect.Yes},
				{Backend: detect.NFT, Family: detect.IPv6, Supported: detect.Yes},
				{Backend: detect.Legacy, Family: detect.IPv4, Supported: detect.Yes, Hint: detect.Yes},
				{Backend: detect.Legacy, Family: detect.IPv6, Supported: detect.Yes},
			},
		},
		Here:         here.Here{Backend: detect.Legacy, Program: "/p/xtables-legacy-multi", How: here.EachCall},
		Network:      here.Network{Namespace: "net:[1]", Interfaces: []string{"lo", "ens3"}, Process1: detect.Yes},
		Capabilities: []Capability{{Name: "CAP_NET_ADMIN", Present: true}, {Name: "CAP_NET_RAW", Present: true}},
		Programs: []Program{
			{Mode: detect.NFT, Path: "/p/xtables-nft-multi", Version: "iptables v1.8.9 (nf_tables)"},
			{Mode: detect.Legacy, Path: "/p/xtables-legacy-multi", Version: "iptables v1.8.9 (legacy)"},
		},
		Names: []layout.Status{
			{Name: "iptables", ResolvesTo: "/p/iptables-wrapper", Wrapper: true},
			{Name: "ip6tables", ResolvesTo: "/p/iptables-wrapper", Wrapper: true},
		},
		canLoad: true,
	}
}

// unknown turns the host into one that shows nothing.
func unknown(r *Report) {
	r.Host.Mode, r.Host.Reason, r.Host.Conclusive = detect.NFT, detect.Default, false
	r.Host.Evidence[2].Hint = detect.No
	r.Here = here.Here{Backend: detect.NFT, Program: "/p/xtables-nft-multi", How: here.EachCall}
}

func unknownBecause(backend int, err error) func(*Report) {
	return func(r *Report) {
		unknown(r)
		r.Host.Evidence[backend].Err = err
	}
}

// wrong has iptables here run nft, on a legacy host.
func wrong(how here.How) func(*Report) {
	return func(r *Report) {
		r.Here = here.Here{Backend: detect.NFT, Program: "/p/xtables-nft-multi", How: how, Differs: true}
	}
}

func missing(all *[]Capability, names ...string) {
	for i, c := range *all {
		if slices.Contains(names, c.Name) {
			(*all)[i].Present = false
		}
	}
}

func rules(backend, n int, chains ...string) func(*Report) {
	return func(r *Report) {
		r.Host.Evidence[backend].Tables = []detect.Table{{Name: "nat", Rules: detect.Count{Min: n, Max: n}, Chains: chains}}
	}
}

func support(backend detect.Mode, family detect.Family, name string, has detect.Answer) detect.Support {
	return detect.Support{Backend: backend, Family: family, Extension: detect.Extension{Name: name}, Has: has}
}

type situation struct {
	doc  string
	make func(*Report)
	want []string
}

// situations has what can be wrong, and what must be found: for each finding, its severity, a part of its text, and a
// part of its fix.
var situations = []situation{
	{"healthy", func(*Report) {}, nil},
	{"nothing on the host", unknown, []string{"warning: found neither a kubelet chain nor any rule in this network namespace -> run: iptables-wrapper select --wait 2m"}},
	{"nothing in the Pod's own network", func(r *Report) { unknown(r); r.Network.Own = true }, []string{"warning: the Pod's own network -> hostNetwork: true"}},
	{"no NET_ADMIN", func(r *Report) {
		unknownBecause(0, unix.EPERM)(r)
		missing(&r.Capabilities, "CAP_NET_ADMIN")
		r.Programs[1].Error = "getsockopt failed strangely"
	}, []string{"problem: CAP_NET_ADMIN is missing -> add NET_ADMIN"}},
	{"no capability", func(r *Report) {
		unknownBecause(0, unix.EPERM)(r)
		missing(&r.Capabilities, "CAP_NET_ADMIN", "CAP_NET_RAW")
	}, []string{"problem: CAP_NET_ADMIN and CAP_NET_RAW are missing -> add NET_ADMIN"}},
	{"another user namespace", unknownBecause(1, unix.EPERM), []string{"problem: belongs to another user namespace -> hostUsers: true"}},
	{"not root", func(r *Report) {
		unknownBecause(2, unix.EACCES)(r)
		r.lock, r.strangers = unix.EACCES, true
	}, []string{"warning: not certain -> run as root or with group 0, or add CAP_DAC_READ_SEARCH"}},
	{"no /proc", unknownBecause(2, unix.ENOENT), []string{"warning: not certain -> mount /proc"}},
	{"a kernel error", unknownBecause(2, unix.EIO), []string{"warning: not certain -> dmesg"}},
	{"native nft tables", func(r *Report) {
		unknown(r)
		r.Host.Evidence[0].Foreign = []detect.Chain{{Table: "filter", Name: "mine"}}
		r.Unreadable = []string{"Table `filter'"}
	}, []string{"problem: which is not iptables' own -> run: nft list ruleset"}},
	{"a memory of a guess", func(r *Report) {
		unknown(r)
		r.Host.Reason, r.Remembered, r.Here.How = detect.Remembered, detect.NFT, here.Remembered
	}, []string{"warning: chose nft before the host showed what it uses -> select --wait"}},
	{"a memory of a guess in the Pod's own network", func(r *Report) {
		unknown(r)
		r.Host.Reason, r.Remembered, r.Here.How, r.Network.Own = detect.Remembered, detect.NFT, here.Remembered, true
	}, []string{"warning: chose nft before the host showed what it uses -> hostNetwork: true"}},
	{"select --mode", func(r *Report) {
		unknown(r)
		r.Host.Reason, r.Remembered, r.Here.How = detect.Remembered, detect.NFT, here.Switch
	}, nil},
	{"the programs have capabilities", func(r *Report) {
		unknownBecause(0, unix.EPERM)(r)
		missing(&r.Capabilities, "CAP_NET_ADMIN", "CAP_NET_RAW")
		r.fileCaps = []string{"/p/xtables-nft-multi"}
	}, []string{"problem: file capabilities that the wrapper's file lacks -> RUN iptables-wrapper install"}},
	{"other capabilities", func(r *Report) { r.fileCaps = []string{"/p/xtables-nft-multi"} },
		[]string{"warning: file capabilities differ -> RUN iptables-wrapper install"}},

	{"the programs lost their capabilities", func(r *Report) { r.lostCaps, r.wrapperCaps = []string{"/p/xtables-nft-multi"}, true },
		[]string{"warning: file capabilities that these programs lack: /p/xtables-nft-multi -> setcap "}},

	{"the right variable", func(r *Report) { r.Variable, r.Here.How = detect.Legacy, here.Variable }, nil},
	{"the wrong variable", func(r *Report) { wrong(here.Variable)(r); r.Variable = detect.NFT },
		[]string{"problem: IPTABLES_WRAPPER_MODE is nft, but the host uses legacy -> unset IPTABLES_WRAPPER_MODE"}},
	{"the variable where nothing is certain", func(r *Report) { unknown(r); r.Variable, r.Here.How = detect.NFT, here.Variable }, nil},
	{"the variable, and programs that do not get it", func(r *Report) {
		unknown(r)
		r.Variable, r.Here.How, r.Here.Backend = detect.Legacy, here.Variable, detect.Legacy
	}, []string{"warning: is not passed on by programs that clear the environment -> select --mode legacy"}},
	{"the variable comes too late", func(r *Report) {
		unknown(r)
		r.Host.Reason, r.Remembered, r.Here.How, r.Variable = detect.Remembered, detect.NFT, here.Switch, detect.Legacy
	}, []string{"warning: IPTABLES_WRAPPER_MODE=legacy has no effect -> select --mode legacy"}},
	{"the variable comes too late, and is wrong", func(r *Report) { r.Here.How, r.Variable = here.Switch, detect.NFT },
		[]string{"warning: IPTABLES_WRAPPER_MODE=nft has no effect -> unset IPTABLES_WRAPPER_MODE"}},
	{"the variable, set-user-ID", func(r *Report) { r.distrusted, r.Variable = true, detect.NFT },
		[]string{"warning: set-user-ID -> select --mode nft"}},
	{"the wrong mode is stored", wrong(here.Switch), []string{"problem: iptables in this container is nft, but the host uses legacy (chain KUBE-IPTABLES-HINT -> run: iptables-wrapper reset"}},
	{"and left rules there", func(r *Report) { wrong(here.Switch)(r); rules(0, 3)(r) }, []string{"problem: iptables in this container is nft -> reset"}},
	{"the wrong mode is remembered", wrong(here.Remembered), []string{"problem: This container remembers nft -> run: iptables-wrapper reset, and restart"}},
	{"never installed", wrong(here.NotWrapped), []string{"problem: never put behind the wrapper -> run: iptables-wrapper install"}},
	{"never installed, and right", func(r *Report) { r.Here.How = here.NotWrapped }, []string{"warning: always legacy, whatever the host uses -> run: iptables-wrapper install"}},
	{"a stored mode, in the namespace of another container", func(r *Report) { wrong(here.Switch)(r); r.Network.Process1 = detect.No }, nil},
	{"two modes", func(r *Report) { r.Names[0].Mode, r.Names[1].Mode = detect.NFT, detect.Legacy },
		[]string{"problem: iptables is nft, ip6tables is legacy -> run: iptables-wrapper reset"}},

	{"no command", func(r *Report) { r.Names[0].Error, r.Names[1].Error = "gone", "gone" },
		[]string{"problem: none of the six iptables commands was found: gone -> run: iptables-wrapper install"}},
	{"no command, and the variable", func(r *Report) {
		r.Names[0].Error, r.Names[1].Error, r.Variable, r.Here = "gone", "gone", detect.Legacy, here.Here{How: here.Missing, Error: "gone"}
	}, []string{"problem: none of the six"}},
	{"the program behind the switch is gone", func(r *Report) {
		r.Names[0] = layout.Status{Name: "iptables", Switched: true, Error: "gone"}
		r.Names[1] = layout.Status{Name: "ip6tables", Switched: true, Error: "gone"}
		r.Programs[1] = Program{Mode: detect.Legacy, Error: "no program", missing: true}
	}, []string{"problem: none of the six iptables commands was found: gone -> run: iptables-wrapper reset", "problem: no usable legacy iptables"}},
	{"a broken link", func(r *Report) { r.Names[1].Error = "gone" }, []string{"warning: broken: ip6tables (gone) -> run: iptables-wrapper install"}},
	{"another program", func(r *Report) { r.Names[1] = layout.Status{Name: "ip6tables", ResolvesTo: "/bin/true"} },
		[]string{`warning: ip6tables is "/bin/true", a program that is neither -> install --force`}},
	{"another path", func(r *Report) { r.bypasses = []string{"/usr/local/sbin/iptables"} },
		[]string{"warning: these paths run nft and bypass the wrapper, but the host uses legacy: /usr/local/sbin/iptables -> doctor --dir"}},
	{"another path, in the namespace of another container", func(r *Report) {
		r.bypasses, r.Network.Process1 = []string{"/usr/local/sbin/iptables"}, detect.No
	}, nil},
	{"the host's program is missing", func(r *Report) { r.Programs[1] = Program{Mode: detect.Legacy, Error: "gone", missing: true} },
		[]string{"problem: no usable legacy iptables in this image: gone -> install iptables 1.8.4"}},
	{"the other program is missing", func(r *Report) { r.Programs[0] = Program{Mode: detect.NFT, Error: "gone", missing: true} },
		[]string{"warning: the other backend -> install iptables 1.8.4"}},
	{"a program that fails because its backend is missing from the kernel", func(r *Report) {
		r.Host.Mode, r.Here.Backend, r.Host.Evidence[0].Supported = detect.NFT, detect.NFT, detect.No
		r.Programs[0] = Program{Mode: detect.NFT, Error: "exit status 1"}
	}, []string{"problem: this kernel does not support it ->"}},
	{"two versions", func(r *Report) { r.Programs[0].Version = "iptables v1.8.11 (nf_tables)" }, []string{"warning: nft 1.8.11, legacy 1.8.9 -> one package"}},
	{"no x_tables", func(r *Report) { r.Host.Evidence[2].Supported = detect.No }, []string{"problem: this kernel does not support it -> modprobe -a iptable_filter"}},
	{"x_tables cannot be loaded", func(r *Report) { r.canLoad = false }, []string{"problem: this kernel does not support it -> modprobe -a iptable_filter"}},
	{"no nf_tables", func(r *Report) {
		r.Host.Mode, r.Here.Backend, r.Host.Evidence[0].Supported = detect.NFT, detect.NFT, detect.No
	}, []string{"problem: this kernel does not support it -> modprobe -a nf_tables"}},
	{"nft cannot add a rule", func(r *Report) {
		unknown(r)
		r.Host.Conclusive = true
		r.Host.Evidence[0].Features = []detect.Feature{{Name: detect.FeatureTable, Has: detect.Yes}, {Name: detect.FeatureNAT, Has: detect.No, Err: unix.ENOENT}}
	}, []string{"problem: cannot add a nat chain (ipv4: no such file or directory) -> modprobe -a nft_chain_nat"}},
	{"nft cannot add a rule, so it is legacy", func(r *Report) {
		unknown(r)
		r.Host.Mode, r.Host.Reason, r.Here.Backend = detect.Legacy, detect.OnlySupported, detect.Legacy
		r.Host.Evidence[0].Features = []detect.Feature{{Name: detect.FeatureMatch, Has: detect.No, Err: unix.ENOENT}}
	}, []string{"warning: only because iptables-nft cannot add a xt match -> modprobe -a nft_compat xt_comment"}},
	{"no NET_RAW on a legacy host", func(r *Report) { missing(&r.Capabilities, "CAP_NET_RAW") }, []string{"problem: CAP_NET_RAW is missing -> add NET_RAW"}},
	{"no NET_RAW on an nft host", func(r *Report) { unknown(r); r.Host.Conclusive = true; missing(&r.Capabilities, "CAP_NET_RAW") }, nil},
	{"no lock", func(r *Report) { r.lock = errors.New("read-only file system") }, []string{"problem: cannot lock its tables: read-only file system -> --tmpfs /run"}},
	{"no lock for this user", func(r *Report) { r.lock, r.user = fmt.Errorf("open: %w", unix.EACCES), 65532 },
		[]string{"problem: cannot lock its tables -> run as root, or set XTABLES_LOCKFILE"}},
	{"no lock, on an nft host", func(r *Report) { unknown(r); r.Host.Conclusive = true; r.lock = unix.EROFS }, nil},
	{"an unreadable table", func(r *Report) { unknown(r); r.Host.Conclusive, r.Unreadable = true, []string{"Table `filter'"} }, []string{"problem: cannot list all of its tables: Table `filter' -> nft list ruleset"}},
	{"a listing that fails", func(r *Report) {
		unknown(r)
		r.Host.Conclusive, r.unlisted = true, []string{"iptables-save: signal: killed"}
	}, []string{"problem: cannot list its tables: iptables-save: signal: killed -> run: iptables-nft-save"}},
	{"control characters", func(r *Report) { r.Names[1].Error = "a\x1b[1m\nproblem: b" }, []string{"warning: a [1m problem: b"}},
	{"a conflict", func(r *Report) { r.Host.Conflicts = []detect.Conflict{detect.RulesInBoth, detect.StrayCanary} }, []string{"warning: left over -> reboot the node"}},
	{"rules in the other backend", rules(1, 3, "DOCKER-USER", "KUBE-SERVICES", "mine"),
		[]string{"warning: 3 in nft ipv6 nat, with chains of Docker, Kubernetes -> switch it to legacy; list them with: iptables-nft-save"}},
	{"rules where they belong", rules(2, 3, "KUBE-SERVICES"), nil},
	{"extensions are missing", func(r *Report) {
		r.Extensions = []detect.Support{
			support(detect.Legacy, detect.IPv4, "set", detect.No), support(detect.NFT, detect.IPv4, "CT", detect.No), support(detect.Legacy, detect.IPv6, "REJECT", detect.No),
			support(detect.Legacy, detect.IPv4, "mark", detect.Yes), support(detect.Legacy, detect.IPv6, "mark", detect.Yes),
		}
	}, []string{"warning: set (ipv4), REJECT (ipv6) -> modprobe -a ipt_set ip6t_REJECT"}},
	{"ip6_tables is not loaded, so no extension for it", func(r *Report) {
		r.Extensions = []detect.Support{support(detect.Legacy, detect.IPv6, "set", detect.No)}
	}, nil},
	{"hostPID", func(r *Report) { r.strangers = true }, []string{"warning: hostPID -> iptables-wrapper select"}},
	{"hostPID, after select", func(r *Report) { r.strangers, r.Here.How = true, here.Switch }, nil},
	{"hostPID, and read-only", func(r *Report) { r.strangers, r.fixed = true, unix.EROFS },
		[]string{"warning: cannot be changed (read-only file system), and nothing is remembered -> set IPTABLES_WRAPPER_MODE to legacy, or mount"}},
	{"hostPID, read-only, and the variable", func(r *Report) {
		r.strangers, r.fixed, r.Variable, r.Here.How = true, unix.EROFS, detect.Legacy, here.Variable
	}, nil},
	{"read-only", func(r *Report) { r.fixed = unix.EROFS }, []string{"note: read-only file system -> no action needed"}},
	{"read-only, and no memory", func(r *Report) { r.fixed, r.forgetful = unix.EROFS, errors.New("/dev/shm: gone") },
		[]string{"warning: nothing can be remembered: /dev/shm: gone -> mount a tmpfs on /dev/shm"}},
	{"several", func(r *Report) {
		r.fixed, r.lock, r.Host.Conflicts = unix.EROFS, unix.EROFS, []detect.Conflict{detect.HintInBoth}
	}, []string{"problem: cannot lock ->", "warning: is in both backends ->", "note: read-only ->"}},
}
