// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package containers

import "strings"

// choice is one way in which a container or its host can be, as lines for container.sh. In the first of a dimension
// nothing is wrong.
type choice struct {
	doc, lines string
	fault      bool   // doctor may say something about it
	truth      string // the host's backend; "" if this says nothing of it, "unknown" if nobody can know
}

type dimension struct {
	name    string
	choices []choice
}

const (
	k3s   = `mkdir -p /opt/k3s; for n in iptables ip6tables; do ln -s /usr/sbin/xtables-nft-multi /opt/k3s/$n; done`
	sixTo = `cd /usr/sbin; ` +
		`for n in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do ` +
		`ln -sf %s $n; done`
	script  = `printf '#!/bin/sh\nexec %s "$@"\n' >/usr/local/sbin/iptables; chmod 755 /usr/local/sbin/iptables`
	install = `; iptables-wrapper install`
	flush   = `nft flush ruleset; for f in iptables ip6tables; do for t in filter nat mangle; do $f-legacy -t $t ` +
		`-F; $f-legacy -t $t -X; done; done`
	hint = ` -t mangle -N KUBE-IPTABLES-HINT`
)

func image(commands string) string  { return "image " + quote(commands) }
func host_(commands string) string  { return "host " + quote(commands) }
func inside(commands string) string { return "inside " + quote(commands) }

// quote makes one word of a text, for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var dimensions = []dimension{
	{"host", hosts},
	{"image", images},
	{"root", []choice{{"writable", "root=rw", false, ""}, {"read-only", "root=ro", false, ""}}},
	{"/run", []choice{{"writable", "run=rw", false, ""}, {"read-only", "run=ro", true, ""}}},
	{
		"lock",
		[]choice{{"the host's", "lock=host", false, ""}, {"none", "lock=none", false, ""}, {"a " +
			"directory", "lock=directory", true, ""}},
	},
	{"user", []choice{
		{"root", "user= ambient=", false, ""},
		{"65534", "user='--reuid=65534 --regid=65534 --clear-groups' ambient=", true, ""},
		{"65534 with ambient capabilities", "user='--reuid=65534 --regid=65534 --clear-groups' ambient=yes", true, ""},
		{
			"65534 with group 0 and ambient capabilities",
			"user='--reuid=65534 --regid=0 --clear-groups' ambient=yes",
			true,
			"",
		},
	}},
	{"capabilities", []choice{
		{
			"Docker's and NET_ADMIN",
			"caps=$docker,+net_admin",
			false,
			""}, {"only the two",
			"caps=+net_admin,+net_raw",
			false,
			"",
		},
		{
			"no NET_RAW",
			"caps=+net_admin,+chown,+dac_override",
			true,
			""}, {"no NET_ADMIN",
			"caps=+net_raw,+dac_override",
			true,
			"",
		},
	}},
	{
		"new privileges",
		[]choice{{"allowed", "privileges=", false, ""}, {"none", "privileges=--no-new-privs", true, ""}},
	},
	{"process 1", []choice{{"its own", "pid=own", false, ""}, {"the host's", "pid=host", true, ""}}},
	{
		"PATH of kubectl exec",
		[]choice{{"that of process 1", "exec=", false, ""}, {"the system's", "exec=system", false, ""}},
	},
	{"network", []choice{{"the host's", "net=host", false, ""}, {"its own", "net=pod", true, "unknown"}}},
	{"variable", []choice{
		{
			"none",
			"variable=",
			false,
			""}, {"nft",
			"variable=IPTABLES_WRAPPER_BACKEND=nft",
			true,
			""}, {"legacy",
			"variable=IPTABLES_WRAPPER_BACKEND=legacy",
			true,
			"",
		}, {"none of them", "variable=IPTABLES_WRAPPER_BACKEND=nf_tables", true, ""},
	}},
	{"before", []choice{
		{"nothing", ":", false, ""},
		{"a listing", inside("timeout 2 iptables -S"), false, ""},
		{"a rule", inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT"), false, ""},
		{"a chain", inside("timeout 2 iptables -t nat -N MINE; timeout 2 ip6tables -t nat -N MINE"), false, ""},
		{"select nft", inside("iptables-wrapper select nft"), true, ""},
		{"select legacy", inside("iptables-wrapper select legacy"), true, ""},
		{
			"a rule, and the host changes to legacy",
			inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT") + "\n" + host_(flush+"; "+
				"iptables-legacy"+hint),
			true,
			"legacy",
		},
		{
			"a rule, and the host changes to nft",
			inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT") + "\n" + host_(flush+"; iptables-nft"+hint),
			true,
			"nft",
		},
		{"a restart", inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT") + "\nrestart", true, ""},
		{
			"the host changes to legacy, and a restart",
			inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT") + "\n" + host_(flush+"; "+
				"iptables-legacy"+hint) + "\nrestart",
			true,
			"legacy",
		},
		{
			"a rule, and the host's rules change to legacy",
			inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT") + "\n" + host_(flush+"; iptables-legacy "+
				"-A FORWARD -s 192.0.2.3 -j ACCEPT"),
			true,
			"unknown",
		},
		{
			"a rule, and the host's rules change to nft",
			inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT") + "\n" + host_(flush+"; iptables-nft -A "+
				"FORWARD -s 192.0.2.3 -j ACCEPT"),
			true,
			"unknown",
		},
		{
			"a chain, and kubelet starts with legacy",
			inside("timeout 2 iptables -t nat -N MINE") + "\n" + host_("iptables-legacy"+hint+"; iptables-legacy "+
				"-t nat -N MINE"),
			true,
			"unknown",
		},
	}},
}
