#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the tags of a version's image: tags.sh VERSION. The newest release of its major version is also that version: v1. Git's tags,
# which this reads, are never moved.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: release/tags.sh VERSION}
major=${version%%.*}
echo "$version"
if [[ $version != *-* ]]; then
	newest=$({ git tag --list "$major.*" && echo "$version"; } | grep -v -e - | sort -V | tail -n 1)
	[ "$newest" != "$version" ] || echo "$major"
fi
