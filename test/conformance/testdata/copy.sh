# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The binary takes the place of one name, and the others are links to it. The wrapper lays the rest at its first call.
rm -f /dev/iptables-backend-*
cd /usr/sbin
for name in iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do ln -sfn iptables $name; done
rm -f iptables iptables-current iptables-wrapper
cp "$WRAPPER" iptables
