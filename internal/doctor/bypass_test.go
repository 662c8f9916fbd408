// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

var bypassSituations = []situation{
	{
		"two backends",
		func(r *Report) {
			r.Names[0] = layout.Status{Name: "iptables", Mode: detect.Legacy, Switched: true}
			r.Names[1] = layout.Status{Name: "ip6tables", Mode: detect.NFT}
			r.Here.How = here.Switch
		},
		[]string{"problem two-backends, container -> ip6tables is nft, iptables is legacy"},
	},
	{
		"a command beside the wrapper",
		func(r *Report) { r.Names[1] = layout.Status{Name: "ip6tables", Mode: detect.NFT} },
		[]string{"problem two-backends, container -> ip6tables is nft, iptables is legacy"},
	},
	{
		"paths that bypass the wrapper, and are right today",
		func(r *Report) {
			r.bypasses = []bypass{{path: "/p/ip6tables", backend: detect.Legacy, beside: true},
				{path: "/sbin/iptables", backend: detect.Legacy, foreign: true}}
		},
		[]string{"warning bypass, image -> host uses: /p/ip6tables, /sbin/iptables" +
			"put the wrapper in front of them too:\nRUN iptables-wrapper install --dir /p\n" +
			"RUN iptables-wrapper install --dir /sbin --force"},
	},
	{
		"a path that bypasses the wrapper, and a backend that has no program",
		func(r *Report) {
			r.Programs[0].Error = "no such program"
			r.bypasses = []bypass{{path: "/sbin/iptables", backend: detect.Legacy, foreign: true}}
		},
		[]string{
			"warning bypass, image -> install iptables 1.8.8 or newer with both backends; then put the wrapper " +
				"in front of them too:\nRUN iptables-wrapper install --dir /sbin --force",
			"warning other-program-unusable, image",
		},
	},
	{
		"a path that runs the other backend, of which it is the only program",
		func(r *Report) {
			r.Programs[0].Error = "no such program"
			r.bypasses = []bypass{{path: "/sbin/iptables", backend: detect.NFT, foreign: true}}
		},
		[]string{
			"warning another-path, image -> install iptables 1.8.8 or newer with both backends; then put the " +
				"wrapper in front of them too:\nRUN iptables-wrapper install --dir /sbin --force",
			"warning other-program-unusable, image",
		},
	},
	{
		"a path that bypasses the wrapper, and nobody knows whether it is right",
		func(r *Report) {
			unknown(r)
			r.Variable, r.Here.How = detect.NFT, here.Variable
			r.bypasses = otherPaths("/sbin/iptables")
		},
		[]string{"warning bypass, image"},
	},
	{
		"a command that differs from iptables",
		func(r *Report) {
			r.bypasses = []bypass{{path: "/p/ip6tables", backend: detect.NFT, beside: true}}
			r.Names[1] = layout.Status{Name: "ip6tables", Mode: detect.NFT}
		},
		[]string{"problem two-backends, container"},
	},
	{
		"another path, and no wrapper",
		func(r *Report) {
			r.bypasses = []bypass{{path: "/sbin/iptables", backend: detect.Legacy}}
			r.Here.How, r.Names[0].Mode = here.NotWrapped, detect.Legacy
		},
		[]string{"warning not-wrapped, image"},
	},
	{
		"another path, and iptables is broken",
		func(r *Report) {
			r.bypasses = []bypass{{path: "/sbin/iptables", backend: detect.Legacy}}
			r.Here.How, r.Names[0].Error = here.Missing, "gone"
		},
		[]string{"problem broken-command, image"},
	},
	{
		"libraries are missing",
		func(r *Report) { r.unloadable = []string{"conntrack (ipv4)", "REJECT (ipv6)"} },
		[]string{"warning libraries-missing, image -> targets: conntrack (ipv4), REJECT (ipv6)" +
			"if something here uses them"},
	},
	{
		"libraries are missing where a variable says they are",
		func(r *Report) { r.unloadable, r.hidingLibraries = []string{"conntrack (ipv4)"}, "XTABLES_LIBDIR" },
		[]string{"warning libraries-missing, pod -> remove XTABLES_LIBDIR"},
	},
	{
		"rules need a library that is missing",
		func(r *Report) {
			nftHost(r)
			r.unlisted = []string{"iptables-save: exit status 3: Error: match extension not found"}
		},
		[]string{"problem listing-fails, image -> install iptables again, with all files"},
	},
	{
		"rules cannot be listed, and libraries are missing where a variable says they are",
		func(r *Report) {
			nftHost(r)
			r.unlisted = []string{"iptables-save: exit status 3: "}
			r.unloadable, r.hidingLibraries = []string{"conntrack (ipv4)"}, "XTABLES_LIBDIR"
		},
		[]string{"problem listing-fails, pod -> remove XTABLES_LIBDIR", "warning libraries-missing, pod"},
	},
	{
		"rules cannot be listed, and libraries are missing",
		func(r *Report) {
			nftHost(r)
			r.unlisted, r.unloadable = []string{"iptables-save: exit status 3: "}, []string{"conntrack (ipv4)"}
		},
		[]string{"problem listing-fails, image -> install iptables again", "warning libraries-missing, image"},
	},
}

// otherPaths are some that run nft.
func otherPaths(paths ...string) (all []bypass) {
	for _, path := range paths {
		all = append(all, bypass{path: path, backend: detect.NFT})
	}
	return all
}
