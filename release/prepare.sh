#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Edits the changelog, the pages, the examples and the recipes for a release, before the tag: prepare.sh VERSION.
#
# PLATFORMS   as for binaries.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: release/prepare.sh VERSION}
fail() { printf 'prepare: %s\n' "$*" >&2 && exit 1; }
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "$version is not a version such as v1.2.3 or v1.2.3-rc.1"

# What is in [Unreleased] becomes the version's section, and the links follow.
if ! grep -qF "## [$version]" CHANGELOG.md; then
	unreleased=$(sed -n '/^## \[Unreleased\]/,/^\(## \)\?\[/{//!p}' CHANGELOG.md)
	[[ $unreleased =~ [^[:space:]] ]] || fail "CHANGELOG.md has nothing in [Unreleased]: write there what is new"
	repository=https://github.com/iptables-wrappers/iptables-wrappers
	sed -i -E "
		s|^## \[Unreleased\]$|&\n\n## [$version] - $(date -u +%F)|
		s|^\[Unreleased\]: .*|[Unreleased]: $repository/compare/$version...HEAD\n[$version]: $repository/releases/tag/$version|
	" CHANGELOG.md
fi

# Pages never lead from a release to a pre-release.
old=$(sed -n 's#^ADD .*/releases/download/\(v[^/]*\)/.*#\1#p' docs/install.md | head -n 1)
[ -n "$old" ] || fail "docs/install.md has no line ADD"
[[ $version != *-* || $old == *-* ]] || exit 0

# They name one version, and the sums of its binaries.
mapfile -t pages < <(git ls-files -- '*.md' examples ':!CHANGELOG.md' ':!docs/evidence')
sed -i -E "s/\b${old//./\\.}($|[^-.0-9A-Za-z]|[-.]($|[^0-9A-Za-z]))/$version\1/g" "${pages[@]}"
sed -i -E "s/^pkgver=.*/pkgver=${version#v}/" examples/packages/APKBUILD
sed -i -E "s/^(  version: ).*/\1\"${version#v}\"/" examples/packages/melange.yaml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
release/binaries.sh "$version" "$scratch"
for file in "$scratch"/*; do
	sum=$(sha256sum "$file")
	sed -i -E "
		s|^(ADD --checksum=sha256:)\S+( .*/${file##*/} )|\1${sum%% *}\2|
		s|^(RUN curl .*/${file##*/} && echo ')\S+|\1${sum%% *}|
	" "${pages[@]}"
done
# What the pages say only as long as nothing was released: a sentence, or to the end of the paragraph. The README begins
# with the release's image instead of one that was built.
sed -i 's/^Not released yet\. //; /^<!-- Until the first release/,/^$/d' "${pages[@]}"
sed -i "s|^COPY --from=iptables-wrapper |COPY --from=ghcr.io/iptables-wrappers/iptables-wrapper:$version |" README.md
