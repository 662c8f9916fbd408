// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package containers

import "fmt"

// images are those that a container can be made of.
var images = []choice{
	healthy("installed", image("iptables-wrapper install")),
	healthy("installed without alternatives",
		image("rm -r /var/lib/dpkg/alternatives; iptables-wrapper install")),
	healthy("v3's links", image(fmt.Sprintf(sixTo, "iptables-wrapper"))),
	healthy("v3's alternatives",
		image("for f in iptables ip6tables; do update-alternatives --install /usr/sbin/$f $f "+
			"/usr/sbin/iptables-wrapper 100 --slave /usr/sbin/$f-restore $f-restore /usr/sbin/iptables-wrapper "+
			"--slave /usr/sbin/$f-save $f-save /usr/sbin/iptables-wrapper; done")),
	faulty("a script that runs the wrapper",
		installed(fmt.Sprintf(script, "/usr/sbin/iptables"))),
	faulty("another program for IPv6", installed("ln -sf /bin/true /usr/sbin/ip6tables")),
	faulty("never wrapped, alternatives auto", ":"),
	faulty("never wrapped, alternatives manual",
		image("for f in iptables ip6tables; do update-alternatives --set $f /usr/sbin/$f-legacy; done")),
	faulty("only nft", image("rm /usr/sbin/xtables-legacy-multi; iptables-wrapper install")),
	faulty("only legacy", image("rm /usr/sbin/xtables-nft-multi; iptables-wrapper install")),
	faulty("legacy for another architecture",
		installed(`printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\367\0' >/usr/sbin/xtables-legacy-multi`)),
	faulty("a library is missing",
		installed("cd /usr/sbin; sed -i s/libxtables.so.12/libxtables.so.99/ xtables-nft-multi xtables-legacy-multi")),
	faulty("a script that runs nft", installed(fmt.Sprintf(script, "/usr/sbin/iptables-nft"))),
	faulty("a script that does nothing", installed(fmt.Sprintf(script, "/bin/true"))),
	faulty("a plain program",
		installed("cp /usr/sbin/xtables-legacy-multi /usr/local/sbin/iptables")),
	faulty("a copy of nft under another path",
		installed("cp /usr/sbin/xtables-nft-multi /usr/local/sbin/ip6tables")),
	faulty("iptables-nft 1.8.7", `image "cp $OLD /usr/sbin/xtables-nft-multi; iptables-wrapper install"`),
	faulty("programs with file capabilities",
		image("setcap cap_net_admin,cap_net_raw+ep /usr/sbin/xtables-nft-multi; "+
			"setcap cap_net_admin,cap_net_raw+ep /usr/sbin/xtables-legacy-multi; iptables-wrapper install; "+
			"setcap cap_net_admin,cap_net_raw+ep /usr/sbin/iptables-wrapper")),
	faulty("an empty volume over the commands",
		installed("cp /usr/sbin/iptables-wrapper /usr/local/bin/")+"\nempty=/usr/sbin"),
	faulty("a PATH without sbin",
		installed("cp /usr/sbin/iptables-wrapper /usr/local/bin/")+"\npath=/usr/local/bin:/usr/bin:/bin"),
	faulty("k3s's directory first", installed(k3s)+"\npath=/opt/k3s:$path"),
	faulty("a directory that others can write first",
		installed(k3s+"; chmod 777 /opt/k3s")+"\npath=/opt/k3s:$path"),
	faulty("nft is baked in", installed("iptables-wrapper select nft")),
	faulty("legacy is baked in", installed("iptables-wrapper select legacy")),
	faulty("a dangling link", installed("ln -sf /gone /usr/sbin/iptables")),
	faulty("a diverted name",
		installed("cd /usr/sbin; mv iptables iptables.real; "+
			"printf '#!/bin/sh\nexec /usr/sbin/iptables.real \"$@\"\n' >iptables; chmod 755 iptables")),
	faulty("another user's wrapper", installed("chown 1000 /usr/sbin/iptables-wrapper")),
	faulty("a switch that leads to itself",
		installed("ln -sfn iptables-current /usr/sbin/iptables-current")),
	faulty("a switch in a circle",
		installed("ln -sfn iptables-circle /usr/sbin/iptables-current; "+
			"ln -s iptables-current /usr/sbin/iptables-circle")),
	faulty("a file for the switch",
		installed("rm /usr/sbin/iptables-current; : >/usr/sbin/iptables-current")),
	faulty("somebody's broken links", image(fmt.Sprintf(sixTo, "/nix/gone/$n"))),
	faulty("a directory for a command",
		installed("rm /usr/sbin/ip6tables; mkdir /usr/sbin/ip6tables")),
	faulty("a script for one command",
		installed("cd /usr/sbin; rm ip6tables-save; "+
			"printf '#!/bin/sh\nexec ip6tables-nft-save \"$@\"\n' >ip6tables-save; chmod 755 ip6tables-save")),
	faulty("links past the wrapper",
		installed("cd /usr/sbin; ln -sf xtables-legacy-multi iptables-save; "+
			"ln -s /usr/sbin/xtables-nft-multi /usr/local/sbin/ip6tables-restore")),
	faulty("a volume with links", image("iptables-wrapper install")+"\n"+refill),
}
