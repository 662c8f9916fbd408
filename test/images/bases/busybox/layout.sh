#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Makes /layout: busybox, apk, and the packages that apk adds. $1 is whose layout it is.
set -euo pipefail

root=/layout
case $1 in
# Which package a program is in, where it is, and what its plain names point to.
alpine) sbin=/usr/sbin plain=nft legacy=iptables-legacy ip6=iptables ;;
alpine-3.19) sbin=/sbin plain=nft legacy=iptables-legacy ip6=iptables ;;
wolfi) sbin=/usr/bin plain=legacy legacy=iptables ip6=ip6tables ;;
*) exit 2 ;;
esac

mkdir -p $root/{etc,proc,sys,dev,run,tmp,usr/bin}
cp -a /rootfs/etc/{protocols,services,passwd,group} $root/etc/
cp -a /rootfs/lib* $root/
cp -a /rootfs/usr/lib* $root/usr/
if [ "$1" = wolfi ]; then
	ln -s usr/bin $root/bin
	ln -s usr/bin $root/sbin
	ln -s bin $root/usr/sbin
else
	mkdir $root/{bin,sbin,usr/sbin}
fi
cp /bin/busybox /apk $root/bin/
chroot $root /bin/busybox --install -s

package() { mkdir -p "$root/packages/$1$sbin"; echo "$root/packages/$1$sbin"; }
cp -a /usr/sbin/xtables-nft-multi "$(package iptables)/"
cp -a /usr/sbin/xtables-legacy-multi "$(package $legacy)/"
for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
	in=iptables
	case $name in ip6*) in=$ip6 ;; esac
	verb=${name#ip*tables}
	ln -s xtables-$plain-multi "$(package $in)/$name"
	ln -s xtables-nft-multi "$(package $in)/${name%$verb}-nft$verb"
	[ $legacy = iptables-legacy ] && in=$legacy
	ln -s xtables-legacy-multi "$(package $in)/${name%$verb}-legacy$verb"
done
