#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Makes an image for each binary in dist/, pushes them as one list, gives that its other tags, and writes its digest to
# dist/images.sha256, for sign.sh.
#
# REGISTRY                        such as ghcr.io/iptables-wrappers
# REGISTRY_USER, REGISTRY_TOKEN   to log in with; without a user, it does not log in
# PODMAN, PUSH_OPTIONS, SKOPEO    the podman command, more options for its push, and the skopeo command
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: release/push.sh VERSION}
: "${REGISTRY:?REGISTRY is not set}"
read -ra options <<<"${PUSH_OPTIONS:-}"
read -ra skopeo <<<"${SKOPEO:-skopeo}"
(cd dist && sha256sum --quiet --check SHA256SUMS)
. release/login.sh

list=localhost/iptables-wrapper-$$
cleanup() {
	"${podman[@]}" manifest rm "$list" >/dev/null 2>&1 || true
	rm -rf "$scratch"
}
trap cleanup EXIT
"${podman[@]}" manifest create "$list" >/dev/null
for file in dist/iptables-wrapper-linux-*; do
	arch=${file##*-}
	install -D -m 755 "$file" "$scratch/$arch/out/iptables-wrapper"
	install -D -m 644 dist/LICENSES "$scratch/$arch/out/LICENSES"
	# The stage that would compile the program again is replaced by a directory.
	"${podman[@]}" build --quiet --platform "linux/${arch/armv7/arm/v7}" --manifest "$list" --build-context "build=$scratch/$arch" \
		--timestamp "$(git log -1 --format=%ct)" --label "org.opencontainers.image.version=$version" \
		--label "org.opencontainers.image.revision=$(git rev-parse HEAD)" . >/dev/null
done
"${podman[@]}" manifest push --quiet --all --digestfile "$scratch/digest" "${options[@]}" "$list" \
	"docker://$REGISTRY/iptables-wrapper:$version"
digest=$(cat "$scratch/digest")
# Another push would compress the layers again, and have another digest, which nobody signs.
for tag in $(release/tags.sh "$version"); do
	[ "$tag" = "$version" ] || "${skopeo[@]}" copy --quiet --all --preserve-digests \
		"docker://$REGISTRY/iptables-wrapper@$digest" "docker://$REGISTRY/iptables-wrapper:$tag"
done
printf '%s  %s\n' "${digest#sha256:}" "$REGISTRY/iptables-wrapper" >dist/images.sha256
