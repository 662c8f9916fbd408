#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Opens a pull request for a patch release of Go: go.sh. It changes the Go of each go.mod and of the Dockerfile, where the image's digest
# follows, and the newest Go, which CI tests with, too. A line of Go that is no longer supported becomes the oldest one that is.
# Where there is nothing new, or the pull request's branch exists, it changes nothing.
#
# GO_RELEASES   the list of Go's supported releases, another URL
# SKOPEO, GH    the skopeo and gh commands
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'go: %s\n' "$*" >&2 && exit 1; }
stop() { printf 'go: %s\n' "$*" >&2 && exit 0; }
read -ra skopeo <<<"${SKOPEO:-skopeo}"
read -ra gh <<<"${GH:-gh}"

releases=$(curl --fail --silent --show-error --location --retry 3 "${GO_RELEASES:-https://go.dev/dl/?mode=json}")
# Versions with "rc" or "beta" do not match.
mapfile -t supported < <(grep -oE '"version": *"go[0-9.]+"' <<<"$releases" | grep -oE '[0-9.]+' | sort -uV)
((${#supported[@]})) || fail "the list has no releases"
newest=${supported[-1]}
old=$(sed -n 's/^toolchain go//p' go.mod)
new=${supported[0]}
for version in "${supported[@]}"; do
	[[ $version != "${old%.*}".* ]] || new=$version
done
[ "$(printf '%s\n' "$old" "$new" | sort -V | tail -n 1)" = "$new" ] || fail "go.mod has $old, and the list ends its line with $new"

branch=go-$new-$newest
if git ls-remote --exit-code --heads origin "$branch" >/dev/null; then
	stop "the branch $branch exists"
fi

if [ "$new" != "$old" ]; then
	image=$(sed -nE 's|^FROM (\S+/golang:\S+)@sha256:[0-9a-f]+ AS build$|\1|p' Dockerfile)
	[ -n "$image" ] || fail "the Dockerfile has no image of Go"
	new_image=${image/":$old-"/":$new-"}
	said=$(mktemp)
	trap 'rm -f "$said"' EXIT
	# The digest is that of the list for all platforms. It comes a day or two after the release.
	if ! digest=$("${skopeo[@]}" inspect --raw "docker://$new_image" 2>"$said" | sha256sum); then
		cat "$said" >&2
		grep -qi 'manifest unknown' "$said" || exit 1
		stop "$new_image does not exist yet"
	fi
	sed -i -E "s|$image@sha256:[0-9a-f]+|$new_image@sha256:${digest%% *}|" Dockerfile
	git ls-files -z -- 'go.mod' '*/go.mod' | xargs -0 sed -i "s/^toolchain go$old\$/toolchain go$new/"
	sed -i -E "/^- Built with Go [0-9.]+\.\$/d; s/^## \[Unreleased\]\$/&\n\n- Built with Go $new./" CHANGELOG.md
fi
sed -i -E "s/^(NEWEST_GO := go).*/\1$newest/" Makefile
! git diff --quiet || stop "go$new and go$newest are the newest"

git switch --quiet --create "$branch"
git -c user.name='github-actions[bot]' -c user.email='41898282+github-actions[bot]@users.noreply.github.com' \
	commit --quiet --all --message "Go $new; CI also with $newest"
git push --quiet origin "$branch"
"${gh[@]}" pr create --head "$branch" --title "Go $new" --body "https://go.dev/doc/devel/release says what was fixed. \
For a security release, a patch release follows within seven days (SECURITY.md): merge this, then docs/releasing.md."
# A workflow's own pull request starts no other workflow.
"${gh[@]}" workflow run ci.yml --ref "$branch"
