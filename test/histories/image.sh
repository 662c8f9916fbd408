# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# $IMAGE becomes the /usr/sbin of an image: the programs of both backends, and the wrapper, $IPTABLES_WRAPPER, under the six commands.
mkdir "$IMAGE"
cp /usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /usr/sbin/nft "$IMAGE"
cp "$IPTABLES_WRAPPER" "$IMAGE/iptables-wrapper"
cd "$IMAGE"
for tables in iptables ip6tables; do
	for action in "" -save -restore; do
		for backend in nft legacy; do ln -s xtables-$backend-multi $tables-$backend$action; done
		ln -s iptables-current $tables$action
	done
done
ln -s iptables-wrapper iptables-current
