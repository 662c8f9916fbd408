# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The first process of a container: prepares the host's state and the six commands, then runs a client's script.
# CLIENT: the script. HOST: hint, docker, node or empty. BACKEND: the host's backend. WRAPPED, READONLY: 1 or 0.
set -eu
exec 3>&1 4>&2
. /test/module/box/lib.sh
. "/test/module/$CLIENT"

ip link set lo up
setup
load_host
if [ "$WRAPPED" = 1 ]; then
	wrap
else
	direct "$BACKEND"
fi
if [ "$READONLY" = 1 ]; then
	for volume in /var ${volumes-}; do
		mount --bind "$volume" "$volume"
	done
	mount -o remount,bind,ro /
fi
record start
main
