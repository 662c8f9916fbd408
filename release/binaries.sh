#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Builds the program for each platform: binaries.sh VERSION DIRECTORY. The bytes depend on the source, on VERSION and on the Go of
# go.mod. They do not depend on the commit, so a commit can contain their sums.
#
# PLATFORMS   other platforms, linux/amd64 among them
set -euo pipefail
umask 022
version=${1:?usage: release/binaries.sh VERSION DIRECTORY}
out=$(realpath -m "${2:?usage: release/binaries.sh VERSION DIRECTORY}")
cd "$(dirname "$0")/.."
read -ra platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64 linux/arm/v7 linux/ppc64le linux/s390x linux/riscv64 linux/386}"

# This Go and no newer one, for the processors that it builds for by default, whatever the environment and "go env -w" say.
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
export GOTOOLCHAIN GOFLAGS='' GOEXPERIMENT='' GOFIPS140=off GOWORK=off GO_EXTLINK_ENABLED=0
export GOAMD64=v1 GOARM64=v8.0 GO386=sse2 GOPPC64=power8 GORISCV64=rva20u64
for platform in "${platforms[@]}"; do
	IFS=/ read -r os arch variant <<<"$platform"
	name=iptables-wrapper-$os-$arch${variant:+$variant}
	echo "release: $name" >&2
	GOOS=$os GOARCH=$arch GOARM=${variant#v} make --no-print-directory -s build BINARY="$out/$name" VERSION="$version"
done
