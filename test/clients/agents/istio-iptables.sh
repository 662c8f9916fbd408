# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A sidecar's init container writes its redirections twice, then others instead, and removes them. Where there are programs
# such as iptables-legacy, Istio chooses among those itself: here, the image has the six commands only.

setup() {
	local name
	ip address add 192.0.2.7/24 dev lo
	ip address add 2001:db8::7/64 dev lo nodad
	mkdir /usr/local/only
	for name in $names; do ln -s "/usr/sbin/$name" "/usr/local/only/$name"; done
}

init() {
	PATH=/usr/local/only /test/bin/istio-iptables -p 15001 -z 15006 -u 1337 -m REDIRECT -i '*' -x 192.0.2.0/24 -b '*' -d 15090,15021,15020 \
		--redirect-dns --dual-stack "$@"
}

main() {
	run init init
	run init-again init
	run init-other init --reconcile -o 6379
	run cleanup init --cleanup-only
}
