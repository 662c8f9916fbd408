#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Edits the changelog and the pages for a release, which is what docs/releasing.md asks for before the tag: prepare.sh VERSION.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: release/prepare.sh VERSION}
fail() { printf 'prepare: %s\n' "$*" >&2 && exit 1; }
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "$version is not a version such as v1.2.3 or v1.2.3-rc.1"
! grep -qF "## [$version]" CHANGELOG.md || fail "CHANGELOG.md already has a section for $version"
unreleased=$(sed -n '/^## \[Unreleased\]/,/^## \[v/{//!p}' CHANGELOG.md)
[[ $unreleased =~ [^[:space:]] ]] || fail "CHANGELOG.md has nothing in [Unreleased]: write there what is new"

# What is in [Unreleased] becomes the version's section, and the links follow.
repository=https://github.com/iptables-wrappers/iptables-wrappers
sed -i -E "
	s|^## \[Unreleased\]$|&\n\n## [$version] - $(date -u +%F)|
	s|^\[Unreleased\]: .*|[Unreleased]: $repository/compare/$version...HEAD\n[$version]: $repository/releases/tag/$version|
" CHANGELOG.md

# Pages name one version. A pre-release replaces another one only: pages never lead from a release to a pre-release.
old=$(sed -n 's#^COPY --from=ghcr.io/iptables-wrappers/iptables-wrapper:\(v[^ ]*\) .*#\1#p' docs/install.md)
[ -n "$old" ] || fail "docs/install.md names no version"
[[ $version != *-* || $old == *-* ]] || exit 0
mapfile -t pages < <(git ls-files -- '*.md' ':!CHANGELOG.md' ':!docs/evidence')
sed -i -E "s/\b${old//./\\.}($|[^-.0-9A-Za-z]|[-.]($|[^0-9A-Za-z]))/$version\1/g" "${pages[@]}"
# What the pages say only as long as nothing was released, to the end of the paragraph.
sed -i '/^<!-- Until the first release/,/^$/d' "${pages[@]}"
