#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# decide.sh SCRATCH DETECTOR SETUP: in new namespaces, makes a host, asks a detector, and prints nft, legacy, or "fails"; with a
# question mark if the detector says itself that it is not certain. Called by compare.sh.
set -euo pipefail
scratch=$1 detector=$2 setup=$3
cd "$scratch"

# A container: what detectors write to is its own.
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t tmpfs none "$scratch/mounts"
mkdir -p "$scratch"/mounts/{upper,work}/{usr/sbin,etc/alternatives,var/lib/dpkg,var/log}
for dir in /usr/sbin /etc/alternatives /var/lib/dpkg /var/log; do
	mount -t overlay overlay -o "lowerdir=$dir,upperdir=$scratch/mounts/upper$dir,workdir=$scratch/mounts/work$dir" "$dir"
done
for dir in /dev/shm /run /usr/local/sbin /usr/local/bin; do
	mount -t tmpfs none "$dir"
done

load() { "iptables-$1-restore" <"$2"; }
program() {
	load "$1" "$2.save"
	[ ! -e "$2.save6" ] || "ip6tables-$1-restore" <"$2.save6"
}
firewall() {
	printf '%s\n' '*filter' ':INPUT DROP' '-A INPUT -i lo -j ACCEPT' '-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT' \
		'-A INPUT -p tcp --dport 22 -j ACCEPT' COMMIT | "iptables-$1-restore"
}
bans() { (echo '*filter'; seq -f '-A INPUT -p tcp --dport %g -j REJECT' 1 "$2"; echo COMMIT) | "iptables-$1-restore" --noflush; }
blocklist() {
	{
		printf '%s\n' 'add table ip blocklist' 'add chain ip blocklist input { type filter hook input priority -1; }'
		seq -f 'add rule ip blocklist input tcp dport %g drop' 1 "$1"
	} | nft -f -
}
vpn() { "iptables-$1" -t nat -A POSTROUTING -s 10.8.0.0/24 -j MASQUERADE; }
(eval "$setup") >/dev/null 2>&1

# names BACKEND: the six commands run a backend's program, as in an image without a wrapper.
names() {
	local name
	for name in iptables{,-save,-restore} ip6tables{,-save,-restore}; do
		ln -sf "xtables-$1-multi" "/usr/sbin/$name"
	done
}

# part FIRST LAST: the lines of the detector's script from the one that matches FIRST to the one before LAST.
part() { sed -n "/$1/,/$2/p" "programs/$detector" | sed '$d'; }

# ran: the backend in a version, or in a name.
ran() {
	case $1 in
	*legacy* | *iptablesRunner*) echo legacy ;;
	*nf_tables* | *nft*) echo nft ;;
	*) echo fails ;;
	esac
}

# Nothing may load a module, and Docker's daemon is not started.
printf '#!/bin/sh\nexit 1\n' >/usr/local/sbin/modprobe
printf '#!/bin/sh\nexit 0\n' >/usr/local/sbin/docker-init
chmod 755 /usr/local/sbin/*

case $detector in
ours)
	if answer=$(programs/ours detect --strict 2>/dev/null); then echo "$answer"; else echo "$answer?"; fi
	;;
v2)
	names nft
	cp programs/v2 mounts/installer
	sh mounts/installer >/dev/null
	ran "$(iptables --version)"
	;;
v3)
	names nft
	install -m 755 programs/v3 /usr/sbin/iptables-wrapper
	/usr/sbin/iptables-wrapper install
	ran "$(iptables --version)"
	;;
dind)
	names nft
	mkdir /usr/local/sbin/.iptables-legacy
	for name in iptables{,-save,-restore} ip6tables{,-save,-restore}; do
		ln -s /usr/sbin/xtables-legacy-multi "/usr/local/sbin/.iptables-legacy/$name"
	done
	ran "$(sh programs/dind dockerd 2>/dev/null)"
	;;
kind)
	part '^select_iptables() {' '^fix_certificate() {' >mounts/function
	bash -c 'set -o errexit -o nounset -o pipefail; log_info() { :; }; . mounts/function; select_iptables'
	ran "$(iptables --version)"
	;;
klipper-lb)
	names nft
	part '^#!' '^start_proxy() {' >mounts/script
	echo check_iptables_mode >>mounts/script
	sh mounts/script >/dev/null 2>&1
	ran "$(iptables --version)"
	;;
k3s-root)
	install -m 755 programs/k3s-root mounts/iptables-detect.sh
	ran "$(sh mounts/iptables-detect.sh 2>/dev/null | sed 's/ detected.*//; s/mode is nft/nf_tables/')"
	;;
fail2ban)
	names nft
	part '^iptablesLegacy=0' '^iptables -V' >mounts/script
	IPTABLES_MODE=auto bash mounts/script >/dev/null 2>&1
	ran "$(iptables --version)"
	;;
istio | gluetun)
	names nft
	ran "$(programs/$detector 2>/dev/null)"
	;;
tailscale)
	names legacy
	ran "$(programs/tailscale 2>/dev/null)"
	;;
esac
