#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Builds the files of a GitHub release into dist/: make release VERSION=v1.2.3. All but govulncheck's two files are the same whenever and
# wherever they are built.
#
# PLATFORMS, VULNDB   as for binaries.sh and vulnerabilities.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: release/build.sh VERSION}
fail() { printf 'release: %s\n' "$*" >&2 && exit 1; }
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "$version is not a version such as v1.2.3 or v1.2.3-rc.1"
[ -z "$(git status --porcelain)" ] || fail "the checkout has uncommitted changes"
grep -qF "## [$version]" CHANGELOG.md || fail "CHANGELOG.md has no section for $version: run release/prepare.sh"

out=$PWD/dist
rm -rf "$out"
mkdir "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
release/binaries.sh "$version" "$out"

# The page tells users to check these sums.
for file in "$out"/*; do
	sum=$(sha256sum "$file")
	while read -r page; do
		[ "$page" = "${sum%% *}" ] || fail "docs/install.md has another sum for ${file##*/}: run release/prepare.sh again"
	done < <(sed -nE "
		s|^ADD --checksum=sha256:(\S+) .*/download/$version/${file##*/} .*|\1|p
		s|^RUN curl .*/download/$version/${file##*/} && echo '(\S+) .*|\1|p
	" docs/install.md)
done

# What is linked in is the same for every platform. The list has the sum of the tool that made it: so this Go, too.
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
export GOTOOLCHAIN GOFLAGS=-trimpath GOEXPERIMENT='' GOFIPS140=off GOWORK=off GO_EXTLINK_ENABLED=0 GOAMD64=v1 GOARM64=v8.0
cp "$out/iptables-wrapper-linux-amd64" "$scratch/iptables-wrapper"
release/licenses.sh "$scratch/iptables-wrapper" >"$out/LICENSES"
(cd release && go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod bin -json -std -noserial -version "$version" \
	-output "$scratch/sbom" "$scratch/iptables-wrapper")
date=$(TZ=UTC git log -1 --format=%cd --date=format-local:%FT%TZ)
sed "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$date\"/" "$scratch/sbom" >"$out/iptables-wrapper.cdx.json"
release/vulnerabilities.sh "$version" "$scratch/iptables-wrapper" "$out"

(cd "$out" && LC_ALL=C sha256sum -- * >SHA256SUMS)
# Under sudo, the files are for the user who called it.
[ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$out"
echo "release: $version is in dist/" >&2
