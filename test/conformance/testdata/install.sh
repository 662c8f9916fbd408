# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# This project's own way to make the names lead to its wrapper. Where it was run before, it undoes what calls have kept.
if test -L /usr/sbin/iptables-current; then
	rm -f /dev/iptables-backend-*
	exec ln -sfn iptables-wrapper /usr/sbin/iptables-current
fi
cp "$WRAPPER" /usr/sbin/iptables-wrapper
exec /usr/sbin/iptables-wrapper install --force
