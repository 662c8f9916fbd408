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

func healthy(doc, lines string) choice { return choice{doc: doc, lines: lines} }
func faulty(doc, lines string) choice  { return choice{doc: doc, lines: lines, fault: true} }

// on is the choice on a host that uses a backend.
func (c choice) on(truth string) choice {
	c.truth = truth
	return c
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
	script = `printf '#!/bin/sh\nexec %s "$@"\n' >/usr/local/sbin/iptables; chmod 755 /usr/local/sbin/iptables`
	hint   = ` -t mangle -N KUBE-IPTABLES-HINT`
)

func image(commands string) string  { return "image " + quote(commands) }
func installed(then string) string  { return image("iptables-wrapper install; " + then) }
func host_(commands string) string  { return "host " + quote(commands) }
func inside(commands string) string { return "inside " + quote(commands) }

var aRule = inside("timeout 2 iptables -A INPUT -s 192.0.2.1 -j ACCEPT")

// changes is a host that loses its rules, and gets others.
func changes(commands string) string {
	return host_(`nft flush ruleset; for f in iptables ip6tables; do for t in filter nat mangle; do ` +
		`$f-legacy -t $t -F; $f-legacy -t $t -X; done; done; ` + commands)
}

// quote makes one word of a text, for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var dimensions = []dimension{
	{"host", hosts},
	{"image", images},
	{"root", []choice{healthy("writable", "root=rw"), healthy("read-only", "root=ro")}},
	{"/run", []choice{healthy("writable", "run=rw"), faulty("read-only", "run=ro")}},
	{"lock", []choice{
		healthy("the host's", "lock=host"), healthy("none", "lock=none"), faulty("a directory", "lock=directory"),
	}},
	{"user", []choice{
		healthy("root", "user= ambient="),
		faulty("65534", "user='--reuid=65534 --regid=65534 --clear-groups' ambient="),
		faulty("65534 with ambient capabilities", "user='--reuid=65534 --regid=65534 --clear-groups' ambient=yes"),
		faulty("65534 with group 0 and ambient capabilities",
			"user='--reuid=65534 --regid=0 --clear-groups' ambient=yes"),
	}},
	{"capabilities", []choice{
		healthy("Docker's and NET_ADMIN", "caps=$docker,+net_admin"),
		healthy("only the two", "caps=+net_admin,+net_raw"),
		faulty("no NET_RAW", "caps=+net_admin,+chown,+dac_override"),
		faulty("no NET_ADMIN", "caps=+net_raw,+dac_override"),
	}},
	{"new privileges", []choice{healthy("allowed", "privileges="), faulty("none", "privileges=--no-new-privs")}},
	{"process 1", []choice{healthy("its own", "pid=own"), faulty("the host's", "pid=host")}},
	{"PATH of kubectl exec", []choice{healthy("that of process 1", "exec="), healthy("the system's", "exec=system")}},
	{"network", []choice{healthy("the host's", "net=host"), faulty("its own", "net=pod").on("unknown")}},
	{"variable", []choice{
		healthy("none", "variable="),
		faulty("nft", "variable=IPTABLES_WRAPPER_BACKEND=nft"),
		faulty("legacy", "variable=IPTABLES_WRAPPER_BACKEND=legacy"),
		faulty("none of them", "variable=IPTABLES_WRAPPER_BACKEND=nf_tables"),
	}},
	{"before", []choice{
		healthy("nothing", ":"),
		healthy("a listing", inside("timeout 2 iptables -S")),
		healthy("a rule", aRule),
		healthy("a chain", inside("timeout 2 iptables -t nat -N MINE; timeout 2 ip6tables -t nat -N MINE")),
		faulty("select nft", inside("iptables-wrapper select nft")),
		faulty("select legacy", inside("iptables-wrapper select legacy")),
		faulty("a rule, and the host changes to legacy", aRule+"\n"+changes("iptables-legacy"+hint)).on("legacy"),
		faulty("a rule, and the host changes to nft", aRule+"\n"+changes("iptables-nft"+hint)).on("nft"),
		faulty("a restart", aRule+"\nrestart"),
		faulty("the host changes to legacy, and a restart",
			aRule+"\n"+changes("iptables-legacy"+hint)+"\nrestart").on("legacy"),
		faulty("a rule, and the host's rules change to legacy",
			aRule+"\n"+changes("iptables-legacy -A FORWARD -s 192.0.2.3 -j ACCEPT")).on("unknown"),
		faulty("a rule, and the host's rules change to nft",
			aRule+"\n"+changes("iptables-nft -A FORWARD -s 192.0.2.3 -j ACCEPT")).on("unknown"),
		faulty("a chain, and kubelet starts with legacy",
			inside("timeout 2 iptables -t nat -N MINE")+"\n"+
				host_("iptables-legacy"+hint+"; iptables-legacy -t nat -N MINE")).on("unknown"),
	}},
}
