#!/bin/sh
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A wrapper with the usual faults, for the suite to find: it counts the lines of iptables-save, decides at once and for good,
# replaces the links one by one, and runs iptables as a child.
nft=$( (iptables-nft-save; ip6tables-nft-save) 2>/dev/null | grep -c '^-')
legacy=$( (iptables-legacy-save; ip6tables-legacy-save) 2>/dev/null | grep -c '^-')
mode=nft
[ "$legacy" -le "$nft" ] || mode=legacy
for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
	ln -sf "xtables-$mode-multi" "/usr/sbin/$name" 2>/dev/null
done
"xtables-$mode-multi" "${0##*/}" "$@"
