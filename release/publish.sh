#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Publishes what "make release" left in dist/: the images in REGISTRY, signed, and a GitHub release with a signature of the
# checksums. Called by the release workflow, whose identity cosign and gh use.
#
# REGISTRY                        such as ghcr.io/iptables-wrappers
# REGISTRY_USER, REGISTRY_TOKEN   to log in with; without a user, it does not log in
# COSIGN                          the cosign command; "true" signs nothing
# GH                              the gh command
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: release/publish.sh VERSION}
: "${REGISTRY:?REGISTRY is not set}"
read -ra podman <<<"${PODMAN:-podman}"
read -ra cosign <<<"${COSIGN:-go run github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3}"
read -ra gh <<<"${GH:-gh}"

scratch=$(mktemp -d)
lists=localhost/publish-$$
cleanup() {
	local name
	for name in iptables-wrapper iptables-wrapper-distroless; do
		"${podman[@]}" manifest rm "$lists-$name" >/dev/null 2>&1 || true # left if the push failed
	done
	rm -rf "$scratch" # with the registry's password
}
trap cleanup EXIT

(cd dist && sha256sum --quiet --check SHA256SUMS)
if [ -n "${REGISTRY_USER:-}" ]; then
	"${podman[@]}" login --username "$REGISTRY_USER" --password-stdin "${REGISTRY%%/*}" <<<"$REGISTRY_TOKEN"
	# cosign reads the file that docker's login writes.
	export DOCKER_CONFIG=${DOCKER_CONFIG:-$scratch}
	cp "${XDG_RUNTIME_DIR:-/run/user/$UID}/containers/auth.json" "$DOCKER_CONFIG/config.json"
fi
mkdir -p bin
: >bin/images.sha256 # for the attestation of the images
for name in iptables-wrapper iptables-wrapper-distroless; do
	list=$lists-$name
	mkdir "$scratch/$name"
	tar -C "$scratch/$name" -xf "dist/$name.oci.tar"
	"${podman[@]}" manifest create "$list" >/dev/null
	"${podman[@]}" manifest add --all "$list" "oci:$scratch/$name:$version" >/dev/null
	"${podman[@]}" manifest push --quiet --all --digestfile "$scratch/digest" ${PUSH_OPTIONS:-} "$list" "docker://$REGISTRY/$name:$version"
	"${podman[@]}" manifest rm "$list" >/dev/null
	printf '%s  %s\n' "$(sed 's/^sha256://' "$scratch/digest")" "$REGISTRY/$name" >>bin/images.sha256
	"${cosign[@]}" sign --yes "$REGISTRY/$name@$(cat "$scratch/digest")"
done
"${cosign[@]}" sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS

# The section of the changelog is the release's text.
sed "1,/^## \[$version\]/d; /^## \[/,\$d; /^\[Unreleased\]:/,\$d" CHANGELOG.md >"$scratch/notes.md"
prerelease=()
[[ $version != *-* ]] || prerelease=(--prerelease)
"${gh[@]}" release create "$version" --verify-tag --title "$version" --notes-file "$scratch/notes.md" "${prerelease[@]}" dist/*
