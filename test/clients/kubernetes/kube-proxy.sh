# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Writes rules for three services in both families, adds a service, removes it, and restarts.
# KUBE_PROXY_MODE: iptables or nftables.

setup() { :; }

# kube-proxy's errors and warnings.
said() {
	sed -n 's/^\([EW]\)[0-9]* [0-9:.]* *[0-9]* /\1 /p' /run/kube-proxy.log | sort -u >&2
	: >/run/kube-proxy.log
}
# rules_of SERVICE: how many families have its rules, in any backend.
rules_of() {
	local backend family
	for family in iptables ip6tables; do
		{
			for backend in nft legacy; do backend $backend $family-save; done
			case $family in iptables) nft list map ip kube-proxy service-ips ;; *) nft list map ip6 kube-proxy service-ips ;; esac
		} 2>/dev/null | grep -c "default/$1[:/]"
	done | grep -cv '^0$'
}
both() { [ "$(rules_of "$1")" = 2 ]; }
none() { [ "$(rules_of "$1")" = 0 ]; }
start() {
	if [ ! -e /run/fakeapi.pid ]; then
		/test/bin/fakeapi >/run/fakeapi.log 2>&1 &
		echo $! >/run/fakeapi.pid
	fi
	/test/bin/kube-proxy --master=http://127.0.0.1:8001 --kube-api-content-type=application/json --hostname-override=node1 \
		--proxy-mode="$KUBE_PROXY_MODE" --nodeport-addresses=primary --cluster-cidr=10.244.0.0/16,2001:db8:244::/48 --iptables-sync-period=2s \
		--iptables-min-sync-period=0s --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 \
		--conntrack-tcp-timeout-close-wait=0 --conntrack-min=0 >>/run/kube-proxy.log 2>&1 &
	echo $! >/run/kube-proxy.pid
	wait_for grep -q 'Caches are synced.*service config' /run/kube-proxy.log
	for service in api web dns; do wait_for both $service; done
	said
}
stop() {
	kill "$(cat /run/kube-proxy.pid)"
	wait_for file_gone "/proc/$(cat /run/kube-proxy.pid)/exe"
}
add() { kill -USR1 "$(cat /run/fakeapi.pid)" && wait_for both late; said; }
remove() { kill -USR2 "$(cat /run/fakeapi.pid)" && wait_for none late; said; }
cleanup() { /test/bin/kube-proxy --cleanup >>/run/kube-proxy.log 2>&1; said; }

main() {
	run start start
	run add add
	run remove remove
	run stop stop
	run start-again start
	run stop-again stop
	run cleanup cleanup
}
