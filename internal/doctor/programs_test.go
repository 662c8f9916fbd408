// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/extensions"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

var programSituations = []situation{
	{"no command", func(r *Report) { r.Names[0].Error, r.Names[1].Error = "gone", "gone" },
		[]string{"problem no-commands, image -> none of the six iptables commands was found: gone"}},
	{"no command, and the variable", func(r *Report) {
		r.Names[0].Error = "gone"
		r.Names[1].Error = "gone"
		r.Variable = detect.Legacy
		r.Here = here.Here{How: here.Missing, Error: "gone"}
	}, []string{"problem no-commands, image -> none of the six"}},
	{"six broken links of somebody else", func(r *Report) {
		r.Names[0].Error, r.Names[1].Error = "gone", "gone"
		r.Here = here.Here{How: here.Missing, Error: "gone"}
		r.notOurs = unix.EEXIST
	}, []string{"problem broken-command, image -> RUN iptables-wrapper install --force"}},
	{"the program behind the switch is gone", func(r *Report) {
		r.Names[0] = layout.Status{Name: "iptables", Switched: true, Error: "gone"}
		r.Names[1] = layout.Status{Name: "ip6tables", Switched: true, Error: "gone"}
		r.Programs[1] = Program{Mode: detect.Legacy, Error: "no program"}
	}, []string{"problem no-commands, image -> install iptables 1.8.8", "problem program-unusable, image"}},
	{
		"two backends, and no wrapper",
		func(r *Report) {
			r.Here.How = here.NotWrapped
			r.Names[0] = layout.Status{Name: "iptables", Mode: detect.Legacy}
			r.Names[1] = layout.Status{Name: "ip6tables", Mode: detect.NFT}
		},
		[]string{"problem two-backends, image -> RUN iptables-wrapper install"},
	},
	{
		"two backends, and no wrapper, but a program of somebody else",
		func(r *Report) {
			r.Here.How = here.NotWrapped
			r.Names[0] = layout.Status{Name: "iptables", Mode: detect.Legacy}
			r.Names[1] = layout.Status{Name: "ip6tables", Mode: detect.NFT}
			r.notOurs = unix.EEXIST
		},
		[]string{"problem two-backends, image -> RUN iptables-wrapper install --force"},
	},
	{
		"the wrong backend is remembered, and this user cannot repoint a command that bypasses the wrapper",
		func(r *Report) {
			wrong(here.Remembered)(r)
			r.Names[1] = layout.Status{Name: "ip6tables", Mode: detect.NFT, Unwritable: unix.EACCES}
		},
		[]string{"problem wrong-backend-remembered, pod"},
	},
	{
		"a broken link",
		func(r *Report) { r.Names[1].Error = "gone" },
		[]string{"warning broken-command, image -> broken: ip6tables (gone)"},
	},
	{
		"another program",
		func(r *Report) { r.Names[1] = layout.Status{Name: "ip6tables", ResolvesTo: "/bin/true"} },
		nil,
	},
	{"another path", func(r *Report) { r.bypasses = otherPaths("/usr/local/sbin/iptables") },
		[]string{"warning another-path, image -> the host uses legacy: /usr/local/sbin/iptables"}},
	{
		"other paths, and a copy of a program",
		func(r *Report) {
			r.bypasses = otherPaths("/sbin/iptables", "/sbin/ip6tables", "/usr/bin/iptables")
			r.bypasses[0].foreign = true
		},
		[]string{"warning another-path, image -> too:\nRUN iptables-wrapper install --dir /sbin --force\n" +
			"RUN iptables-wrapper install --dir /usr/bin"},
	},
	{
		"extensions are missing",
		func(r *Report) {
			r.Extensions = []extensions.Support{
				{Family: detect.IPv6, Extension: extensions.Extension{Name: "statistic"}, Has: detect.No},
				{Family: detect.IPv4, Extension: extensions.Extension{Name: "statistic"}, Has: detect.No},
				{Family: detect.IPv4, Extension: extensions.Extension{Name: "mark"}, Has: detect.No},
				{Family: detect.IPv4, Extension: extensions.Extension{Name: "MARK", Target: true}, Has: detect.Yes},
				{Family: detect.IPv4, Extension: extensions.Extension{Name: "owner"}, Has: detect.Unknown},
			}
		},
		[]string{"warning extensions-missing, node -> no module provides them: statistic (ipv4), mark (ipv4)"},
	},
	{
		"an extension that iptables-nft does not need",
		func(r *Report) {
			nftHost(r)
			r.Extensions = []extensions.Support{
				{Family: detect.IPv4, Extension: extensions.Extension{Name: "mark"}, Has: detect.No},
				{Family: detect.IPv4, Extension: extensions.Extension{Name: "MARK", Target: true}, Has: detect.Yes},
			}
		},
		nil,
	},
	{
		"an old program",
		func(r *Report) { nftHost(r); r.Programs[0].Version = "iptables v1.8.7 (nf_tables)" },
		[]string{"warning old-iptables, image -> /p/xtables-nft-multi (iptables v1.8.7 (nf_tables)) loses parts " +
			"of rules"},
	},
	{
		"an old program that the host does not need",
		func(r *Report) { r.Programs[0].Version = "iptables v1.8.7 (nf_tables)" },
		nil,
	},
	{
		"a broken link, and no program",
		func(r *Report) {
			r.Names[1].Error = "gone"
			r.Programs[1] = Program{Mode: detect.Legacy, Error: "gone"}
		},
		[]string{
			"problem program-unusable, image",
			"warning broken-command, image -> install iptables 1.8.8 or newer with both backends; then add, as root",
		},
	},
	{
		"a name that PATH finds in another directory",
		func(r *Report) {
			r.Names[1].Error = "gone"
			r.absent, r.elsewhere = []string{"ip6tables"}, []string{"ip6tables"}
			r.Client, r.dirArgument = "/opt/iptables", " --dir /opt"
		},
		nil,
	},
	{
		"a name that PATH finds nowhere",
		func(r *Report) {
			r.Names[1].Error = "gone"
			r.absent = []string{"ip6tables"}
			r.Client, r.dirArgument = "/opt/iptables", " --dir /opt"
		},
		[]string{"warning broken-command, image -> broken: ip6tables (gone)"},
	},
	{
		"a PATH without the directory",
		func(r *Report) { r.outOfPath = "/usr/sbin" },
		[]string{"warning not-in-path, pod -> add /usr/sbin to PATH"},
	},
	{
		"a variable that hides the libraries",
		func(r *Report) { r.Programs[1].Error, r.libraries = "cannot load", "XTABLES_LIBDIR" },
		[]string{"problem program-unusable, pod -> remove XTABLES_LIBDIR"},
	},
	{
		"a volume from which nothing can be executed",
		func(r *Report) { r.Programs[1].Error, r.noexec = "permission denied", "/v/xtables-legacy-multi" },
		[]string{"problem program-unusable, pod -> mount the file system of /v/xtables-legacy-multi without"},
	},

	{"another path, in the namespace of another container", func(r *Report) {
		r.bypasses, r.Network.Process1 = otherPaths("/usr/local/sbin/iptables"), detect.No
	}, nil},
	{"the host's program is missing", func(r *Report) { r.Programs[1] = Program{Mode: detect.Legacy, Error: "gone"} },
		[]string{"problem program-unusable, image -> install iptables 1.8.8"}},
	{"the other program is missing", func(r *Report) { r.Programs[0] = Program{Mode: detect.NFT, Error: "gone"} },
		[]string{"warning other-program-unusable, image -> install iptables 1.8.8"}},
	{"a program that fails because its backend is missing from the kernel", func(r *Report) {
		r.Host.Mode, r.Here.Backend, r.Host.Evidence[0].Supported = detect.NFT, detect.NFT, detect.No
		r.Programs[0].Error = "exit status 1"
	}, []string{"problem kernel-lacks-backend, node -> this kernel does not support it"}},
	{
		"no x_tables",
		func(r *Report) { r.Host.Evidence[2].Supported = detect.No },
		[]string{"problem kernel-lacks-backend, node -> modprobe -a iptable_filter"},
	},
	{
		"x_tables cannot be loaded",
		func(r *Report) { r.canLoad = false },
		[]string{"problem kernel-lacks-backend, node -> modprobe -a iptable_filter"},
	},
	{"no nf_tables", func(r *Report) {
		r.Host.Mode, r.Here.Backend, r.Host.Evidence[0].Supported = detect.NFT, detect.NFT, detect.No
	}, []string{"problem kernel-lacks-backend, node -> modprobe -a nf_tables"}},
	{"nft cannot add a rule", func(r *Report) {
		unknown(r)
		r.Host.Conclusive = true
		r.Host.Evidence[0].Features = []detect.Feature{
			{Name: detect.FeatureTable, Has: detect.Yes},
			{Name: detect.FeatureNAT, Has: detect.No, Err: unix.ENOENT},
		}
	}, []string{"problem nft-cannot-add, node -> modprobe -a nf_tables nft_chain_nat"}},
	{"nft cannot add a rule, so it is legacy", func(r *Report) {
		unknown(r)
		r.Host.Mode, r.Host.Reason, r.Here.Backend = detect.Legacy, detect.OnlySupported, detect.Legacy
		r.Host.Evidence[0].Features = []detect.Feature{{Name: detect.FeatureMatch, Has: detect.No, Err: unix.ENOENT}}
	}, []string{"warning only-legacy-works, node -> nft_compat xt_comment"}},
	{
		"no NET_RAW on a legacy host",
		func(r *Report) { r.Capabilities = []string{netAdmin} },
		[]string{"problem no-net-raw, pod -> add NET_ADMIN and NET_RAW"},
	},
	{
		"no NET_RAW on an nft host",
		func(r *Report) {
			unknown(r)
			r.Host.Conclusive = true
			r.Capabilities = []string{netAdmin}
		},
		nil,
	},
	{
		"no lock",
		func(r *Report) { r.lock = errors.New("read-only file system") },
		[]string{"problem no-lock, pod -> --tmpfs /run"},
	},
	{"no lock for this user", func(r *Report) { r.lock, r.user = fmt.Errorf("open: %w", unix.EACCES), 65532 },
		[]string{"problem no-lock, pod -> run as root, or set XTABLES_LOCKFILE"}},
	{
		"no lock for root, by a security module",
		func(r *Report) { r.lock = fmt.Errorf("open: %w", unix.EACCES) },
		[]string{"problem no-lock, pod -> mount the host's /run/xtables.lock"},
	},
	{"a directory for a lock", func(r *Report) { r.lock = irregular{defaultLock, kindDirectory} },
		[]string{"problem no-lock, node -> rmdir /run/xtables.lock"}},
	{"a FIFO for a lock", func(r *Report) { r.lock = irregular{defaultLock, "a FIFO"} },
		[]string{"problem no-lock, node -> rm /run/xtables.lock"}},
	{"a device for a lock", func(r *Report) { r.lock, r.ownLock = irregular{"/dev/null", kindDevice}, true },
		[]string{"warning no-lock, pod -> remove XTABLES_LOCKFILE"}},
	{"programs that others can replace", func(r *Report) {
		r.Programs[1].Error = "not started"
		r.unstarted = []exposure{{"/p/xtables-legacy-multi", "/p/xtables-legacy-multi"}}
	}, []string{
		"warning open-directory, image -> RUN chown -h root:root /p/xtables-legacy-multi && chmod go-w " +
			"/p/xtables-legacy-multi",
	}},
	{"programs in a directory that others can write", func(r *Report) {
		r.unstarted = []exposure{{"/p/xtables-legacy-multi", "/p"}}
	}, []string{"warning open-directory, image -> \"/p/xtables-legacy-multi\" by changing \"/p\""}},
	{"a wrapper that others can write", func(r *Report) { r.rewritable = []string{"/usr/sbin/iptables-wrapper"} },
		[]string{"warning writable-wrapper, image -> RUN iptables-wrapper install"}},
	{"no lock, on an nft host", func(r *Report) { unknown(r); r.Host.Conclusive = true; r.lock = unix.EROFS }, nil},
	{
		"an unreadable table",
		func(r *Report) {
			unknown(r)
			r.Host.Conclusive, r.Unreadable = true, []string{"Table `filter'"}
		},
		[]string{"problem unlisted-tables, node -> nft list ruleset"},
	},
	{"a listing that fails", func(r *Report) {
		unknown(r)
		r.Host.Conclusive = true
		r.unlisted = []string{"iptables-save: exit status 4: no memory\nagain\n", "ip6tables-save: signal: killed: "}
	}, []string{
		"problem listing-fails, node -> cannot list its tables: " +
			"iptables-save: exit status 4: no memory again ; ip6tables-save: signal: killed:",
	}},
}
