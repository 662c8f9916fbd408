# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# This project's own way to make the names lead to its wrapper, in a container that has kept nothing.
rm -f /dev/iptables-backend-*
cp "$WRAPPER" /usr/sbin/iptables-wrapper
/usr/sbin/iptables-wrapper install --force
