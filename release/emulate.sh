#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Lets this machine's kernel run programs of PLATFORM by qemu-user, unless it does already. The registration lasts until the
# next boot: rm it with "echo -1 >/proc/sys/fs/binfmt_misc/qemu-ARCH".
set -euo pipefail
platform=${1:?usage: emulate.sh PLATFORM}
arch=${platform#linux/}
[ "$(go env GOHOSTARCH)" != "$arch" ] || exit 0

# The ELF header: class, byte order and machine.
case $arch in
arm64) emulator=qemu-aarch64-static magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' ;;
riscv64) emulator=qemu-riscv64-static magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xf3\x00' ;;
amd64) emulator=qemu-x86_64-static magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00' ;;
*) echo "emulate.sh: $platform is not among those that it knows" >&2 && exit 1 ;;
esac
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'

misc=$(mktemp -d)
# In a mount namespace of its own, so that nothing stays mounted.
unshare --mount --propagation private bash -euc '
	misc=$1 emulator=$2 magic=$3 mask=$4
	mount -t binfmt_misc none "$misc"
	if ! grep -ls "^interpreter .*/${emulator%-static}" "$misc"/* | grep -q .; then
		printf ":%s:M::%s:%s:%s:F" "${emulator%-static}" "$magic" "$mask" "$(command -v "$emulator")" >"$misc/register"
	fi
' - "$misc" "$emulator" "$magic" "$mask"
rmdir "$misc"
