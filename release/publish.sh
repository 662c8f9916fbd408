#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Makes the GitHub release from dist/, once the images were pushed and everything was signed: publish.sh VERSION.
#
# GH   the gh command
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: release/publish.sh VERSION}
read -ra gh <<<"${GH:-gh}"
(cd dist && sha256sum --quiet --check SHA256SUMS)

# What SHA256SUMS does not list is for the workflow alone.
mapfile -t files < <(sed 's|^[0-9a-f]*  |dist/|' dist/SHA256SUMS)
files+=(dist/SHA256SUMS dist/SHA256SUMS.sigstore.json)

# The section of the changelog is the release's text. There, a link to a file of the repository leads nowhere, and the end of a line
# is one that readers see.
notes=$(mktemp)
trap 'rm -f "$notes"' EXIT
files_of_version=https://github.com/iptables-wrappers/iptables-wrappers/blob/$version
sed "1,/^## \[$version\]/d; /^## \[/,\$d; /^\[Unreleased\]:/,\$d" CHANGELOG.md |
	sed -z -E "s|\n  ([^ -])| \1|g; s#\]\(([^):]+)\)#]($files_of_version/\1)#g" >"$notes"
kind=()
[[ $version != *-* ]] || kind=(--prerelease)
"${gh[@]}" release create "$version" --verify-tag --title "$version" --notes-file "$notes" "${kind[@]}" "${files[@]}"
