// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package containers

import "fmt"

// images are those that a container can be made of.
var images = []choice{
	{"installed", image("iptables-wrapper install"), false, ""},
	{"installed without alternatives", image("rm -r /var/lib/dpkg/alternatives; iptables-wrapper install"), false, ""},
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
	{"only nft", image("rm /usr/sbin/xtables-legacy-multi" + install), true, ""},
	{"only legacy", image("rm /usr/sbin/xtables-nft-multi" + install), true, ""},
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
			"cap_net_admin,cap_net_raw+ep /usr/sbin/xtables-legacy-multi" + install + "; " +
			"setcap cap_net_admin,cap_net_raw+ep /usr/sbin/iptables-wrapper"),
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
	{"nft is baked in", image("true" + install + "; iptables-wrapper select nft"), true, ""},
	{"legacy is baked in", image("true" + install + "; iptables-wrapper select legacy"), true, ""},
	{"a dangling link", image("true" + install + "; ln -sf /gone /usr/sbin/iptables"), true, ""},
	{
		"a diverted name",
		image("true" + install + "; cd /usr/sbin; mv iptables iptables.real; printf '#!/bin/sh\nexec " +
			"/usr/sbin/iptables.real \"$@\"\n' >iptables; chmod 755 iptables"),
		true,
		"",
	},
	{"another user's wrapper", image("true" + install + "; chown 1000 /usr/sbin/iptables-wrapper"), true, ""},
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
}
