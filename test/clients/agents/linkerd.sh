# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A sidecar's init container writes its redirections twice, as after a restart of the pod.

setup() { :; }
container() { "$@"; }

init() {
	container /test/bin/linkerd2-proxy-init --incoming-proxy-port 4143 --outgoing-proxy-port 4140 --proxy-uid 2102 \
		--inbound-ports-to-ignore 4190,4191 --outbound-ports-to-ignore 4567,4568 --use-wait-flag 2>/run/init.log
	local status=$?
	cat /run/init.log >&2
	return $status
}

main() {
	run init init
	run init-again init
}
