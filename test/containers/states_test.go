// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"fmt"
	"strings"
)

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
	{"image", []choice{
		{"installed", image("iptables-wrapper install"), false, ""},
		{"installed without alternatives", image("iptables-wrapper install --alternatives never"), false, ""},
		{"v3's links", image(fmt.Sprintf(sixTo, "iptables-wrapper")), false, ""},
		{
			"v3's alternatives",
			image("for f in iptables ip6tables; do update-alternatives --install /usr/sbin/$f $f " +
				"/usr/sbin/iptables-wrapper 100 --slave /usr/sbin/$f-restore $f-restore " +
				"/usr/sbin/iptables-wrapper --slave /usr/sbin/$f-save $f-save /usr/sbin/iptables-wrapper; done"),
			false,
			"",
		},
		{
			"a script that runs the wrapper",
			image("true" + install + "; " + fmt.Sprintf(script, "/usr/sbin/iptables")),
			true,
			"",
		},
		{"another program for IPv6", image("true" + install + "; ln -sf /bin/true /usr/sbin/ip6tables"), true, ""},
		{"never wrapped, alternatives auto", ":", true, ""},
		{
			"never wrapped, alternatives manual",
			image("for f in iptables ip6tables; do update-alternatives --set $f /usr/sbin/$f-legacy; done"),
			true,
			"",
		},
		{"only nft", image("rm /usr/sbin/xtables-legacy-multi" + install + " --skip-checks"), true, ""},
		{"only legacy", image("rm /usr/sbin/xtables-nft-multi" + install + " --skip-checks"), true, ""},
		{
			"legacy for another architecture",
			image(`true` + install + `; printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\367\0' ` +
				`>/usr/sbin/xtables-legacy-multi`),
			true,
			"",
		},
		{
			"a library is missing",
			image(`true` + install + `; for m in nft legacy; do sed -i s/libxtables.so.12/libxtables.so.99/ ` +
				`/usr/sbin/xtables-$m-multi; done`),
			true,
			"",
		},
		{
			"a script that runs nft",
			image("true" + install + "; " + fmt.Sprintf(script, "/usr/sbin/iptables-nft")),
			true,
			"",
		},
		{"a script that does nothing", image("true" + install + "; " + fmt.Sprintf(script, "/bin/true")), true, ""},
		{
			"a plain program",
			image("true" + install + "; cp /usr/sbin/xtables-legacy-multi /usr/local/sbin/iptables"),
			true,
			"",
		},
		{
			"a copy of nft under another path",
			image("true" + install + "; cp /usr/sbin/xtables-nft-multi /usr/local/sbin/ip6tables"),
			true,
			"",
		},
		{"iptables-nft 1.8.7", `image "cp $OLD /usr/sbin/xtables-nft-multi` + install + `"`, true, ""},
		{
			"programs with file capabilities",
			image("setcap cap_net_admin,cap_net_raw+ep /usr/sbin/xtables-nft-multi; setcap " +
				"cap_net_admin,cap_net_raw+ep /usr/sbin/xtables-legacy-multi" + install),
			true,
			"",
		},
		{
			"an empty volume over the commands",
			image("true"+install+"; cp /usr/sbin/iptables-wrapper /usr/local/bin/") + "\nempty=/usr/sbin",
			true,
			"",
		},
		{
			"a PATH without sbin",
			image("true"+install+"; cp /usr/sbin/iptables-wrapper /usr/local/bin/") +
				"\npath=/usr/local/bin:/usr/bin:/bin",
			true,
			"",
		},
		{"k3s's directory first", image("true"+install+"; "+k3s) + "\npath=/opt/k3s:$path", true, ""},
		{
			"a directory that others can write first",
			image("true"+install+"; "+k3s+"; chmod 777 /opt/k3s") + "\npath=/opt/k3s:$path",
			true,
			"",
		},
		{"nft is baked in", image("true" + install + "; iptables-wrapper select --mode nft"), true, ""},
		{"legacy is baked in", image("true" + install + "; iptables-wrapper select --mode legacy"), true, ""},
		{"a dangling link", image("true" + install + "; ln -sf /gone /usr/sbin/iptables"), true, ""},
		{
			"a switch that leads to itself",
			image("true" + install + "; ln -sfn iptables-current /usr/sbin/iptables-current"),
			true,
			"",
		},
		{
			"a switch in a circle",
			image("true" + install + "; ln -sfn iptables-circle /usr/sbin/iptables-current; ln -s iptables-current " +
				"/usr/sbin/iptables-circle"),
			true,
			"",
		},
		{"a file for the switch", image("true" + install + "; rm /usr/sbin/iptables-current; : >/usr/sbin/" +
			"iptables-current"), true, ""},
		{"somebody's broken links", image(fmt.Sprintf(sixTo, "/nix/gone/$n")), true, ""},
		{
			"a directory for a command",
			image("true" + install + "; rm /usr/sbin/ip6tables; mkdir /usr/sbin/ip6tables"),
			true,
			"",
		},
		{
			"libraries of extensions are missing",
			image("true" + install + "; cd /usr/lib/*/xtables; rm libxt_conntrack.so; : >libip6t_REJECT.so"),
			true,
			"",
		},
		{
			"a script for one command",
			image("true" + install + "; cd /usr/sbin; rm ip6tables-save; printf '#!/bin/sh\nexec ip6tables-nft-save " +
				"\"$@\"\n' >ip6tables-save; chmod 755 ip6tables-save"),
			true,
			"",
		},
		{
			"links past the wrapper",
			image("true" + install + "; cd /usr/sbin; ln -sf xtables-legacy-multi iptables-save; ln -s " +
				"/usr/sbin/xtables-nft-multi /usr/local/sbin/ip6tables-restore"),
			true,
			"",
		},
		{"a volume with links", image("true"+install) + "\n" + refill, true, ""},
	}},
	{"root", []choice{{"writable", "root=rw", false, ""}, {"read-only", "root=ro", false, ""}}},
	{"/dev/shm", []choice{{"writable", "shm=rw", false, ""}, {"read-only", "shm=ro", true, ""}}},
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
			"variable=IPTABLES_WRAPPER_MODE=nft",
			true,
			""}, {"legacy",
			"variable=IPTABLES_WRAPPER_MODE=legacy",
			true,
			"",
		},
	}},
	{"before", []choice{
		{"nothing", ":", false, ""},
		{"a listing", inside("timeout 2 iptables -S"), false, ""},
		{"a rule", inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT"), false, ""},
		{"a chain", inside("timeout 2 iptables -t nat -N MINE; timeout 2 ip6tables -t nat -N MINE"), false, ""},
		{"select nft", inside("iptables-wrapper select --mode nft"), true, ""},
		{"select legacy", inside("iptables-wrapper select --mode legacy"), true, ""},
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
			"legacy",
		},
		{
			"a rule, and the host's rules change to nft",
			inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT") + "\n" + host_(flush+"; iptables-nft -A "+
				"FORWARD -s 192.0.2.3 -j ACCEPT"),
			true,
			"nft",
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
