#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Pushes the images that "make release" left in dist/, and writes their digests to dist/images.sha256, for sign.sh.
#
# REGISTRY                        such as ghcr.io/iptables-wrappers
# REGISTRY_USER, REGISTRY_TOKEN   to log in with; without a user, it does not log in
# PODMAN, PUSH_OPTIONS            the podman command, and more options for its push
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: release/push.sh VERSION}
: "${REGISTRY:?REGISTRY is not set}"
read -ra options <<<"${PUSH_OPTIONS:-}"
(cd dist && sha256sum --quiet --check SHA256SUMS)
. release/login.sh

lists=localhost/push-$$
cleanup() {
	"${podman[@]}" manifest rm "$lists" >/dev/null 2>&1 || true # left if the push failed
	rm -rf "$scratch"
}
trap cleanup EXIT

for archive in dist/*.oci.tar; do
	name=$(basename "$archive" .oci.tar)
	mkdir "$scratch/$name"
	tar -C "$scratch/$name" -xf "$archive"
	"${podman[@]}" manifest create "$lists" >/dev/null
	"${podman[@]}" manifest add --all "$lists" "oci:$scratch/$name:$version" >/dev/null
	"${podman[@]}" manifest push --quiet --all --digestfile "$scratch/digest" "${options[@]}" "$lists" "docker://$REGISTRY/$name:$version"
	"${podman[@]}" manifest rm "$lists" >/dev/null
	printf '%s  %s\n' "$(sed 's/^sha256://' "$scratch/digest")" "$REGISTRY/$name" >>"$scratch/images.sha256"
done
mv "$scratch/images.sha256" dist/
