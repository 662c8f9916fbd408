#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Builds everything that a GitHub release needs into dist/. Called by "make release VERSION=v1.2.3". The same commit gives the same
# bytes: every timestamp is that of the commit, and Go, in the version of go.mod, makes everything but the images. These are the
# same if the same version of podman builds them, and the distroless one as long as Debian does not update what it contains.
#
# PODMAN        the podman command, with global options if needed
# PODMAN_BUILD  more options for podman build
# BASE          the base image of images/distroless; {arch} in it stands for the architecture
# PLATFORMS     platforms of the binaries and of the wrapper's image, linux/amd64 among them
# DISTROLESS    platforms of the distroless image, possibly none; those of another architecture need binfmt_misc (package
#               qemu-user-static)
set -euo pipefail
umask 022 # the images hold these files with their modes
cd "$(dirname "$0")/.."

version=${1:?usage: release/build.sh VERSION}
read -ra podman <<<"${PODMAN:-podman}"
read -ra build_options <<<"${PODMAN_BUILD:-}"
read -ra distroless <<<"${DISTROLESS-linux/amd64 linux/arm64}"
read -ra platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64 linux/arm/v7 linux/ppc64le linux/s390x linux/riscv64 linux/386}"

fail() { printf 'release: %s\n' "$*" >&2 && exit 1; }
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "$version is not a version such as v1.2.3 or v1.2.3-rc.1"
[ -z "$(git status --porcelain)" ] || fail "the checkout has uncommitted changes"
grep -qF "## [$version]" CHANGELOG.md || fail "CHANGELOG.md has no section for $version"
unreleased=$(sed -n '/^## \[Unreleased\]/,/^## \[v/{//!p}' CHANGELOG.md)
[[ ! $unreleased =~ [^[:space:]] ]] || fail "CHANGELOG.md has entries in [Unreleased]: move them to the section of $version"

export TZ=UTC LC_ALL=C
epoch=$(git log -1 --format=%ct)
unset SOURCE_DATE_EPOCH # podman 5 refuses --timestamp beside it
# This Go and no newer one, for the processors that it builds for by default, whatever "go env -w" says.
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
export GOTOOLCHAIN GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0 GO386=sse2 GOPPC64=power8 GORISCV64=rva20u64
revision=$(git rev-parse HEAD)
out=$PWD/dist
rm -rf "$out"
mkdir "$out"
scratch=$(mktemp -d)
mkdir "$scratch/oci"
tag=localhost/iptables-wrapper-release-$$
lists=() images=()
cleanup() {
	rm -rf "$scratch"
	local name
	for name in "${lists[@]}"; do
		"${podman[@]}" manifest rm "$name" >/dev/null 2>&1 || true
	done
	for name in "${images[@]}"; do # not by ID, which would remove the image of another release of this commit
		"${podman[@]}" rmi "$name" >/dev/null 2>&1 || true
	done
}
trap cleanup EXIT

# What makes the archives.
CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' go build -o "$scratch/pack" ./release/pack

# The manual page is printed by the program itself, so by one for this machine.
make --no-print-directory -s build BINARY="$scratch/iptables-wrapper" VERSION="$version"
SOURCE_DATE_EPOCH=$epoch release/man.sh "$scratch/iptables-wrapper" "$version" >"$scratch/iptables-wrapper.8"

# One program for each platform, with the licences of everything that is linked in.
for platform in "${platforms[@]}"; do
	IFS=/ read -r os arch variant <<<"$platform"
	name=iptables-wrapper-$os-$arch${variant:+$variant}
	echo "release: $name" >&2
	stage=$scratch/$platform/out
	mkdir -p "$stage"
	GOOS=$os GOARCH=$arch GOARM=${variant#v} make --no-print-directory -s build BINARY="$stage/iptables-wrapper" VERSION="$version"
	release/licenses.sh "$stage/iptables-wrapper"
	chmod -R u=rwX,go=rX "$stage" # the checkout may have been made under another umask
	cp "$stage/iptables-wrapper" "$out/$name"
	mkdir -p "$scratch/tar/$name"
	cp -r "$stage/." "$scratch/iptables-wrapper.8" "$scratch/tar/$name"
	"$scratch/pack" -gzip -prefix "$name" "$epoch" "$scratch/tar/$name" >"$out/$name.tar.gz"
done

# What is linked in is the same for every platform, so one list does.
cp "$out/iptables-wrapper-linux-amd64" "$scratch/iptables-wrapper"
(cd test/sbom && go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod bin -json -std -noserial -version "$version" \
	-output "$scratch/iptables-wrapper.cdx.json" "$scratch/iptables-wrapper")
sed -E "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$(date -d "@$epoch" +%FT%TZ)\"/" \
	"$scratch/iptables-wrapper.cdx.json" >"$out/iptables-wrapper.cdx.json"

# archive NAME PLATFORM...: the images of the platforms as one OCI archive.
archive() {
	local name=$1 list=$tag-$1:list platform
	shift
	lists+=("$list")
	"${podman[@]}" manifest create "$list" >/dev/null
	for platform; do
		"${podman[@]}" manifest add "$list" "containers-storage:$tag-$name:${platform//\//-}" >/dev/null
	done
	"${podman[@]}" manifest push --quiet --all "$list" "oci:$scratch/oci/$name:$version" >/dev/null
	"$scratch/pack" "$epoch" "$scratch/oci/$name" >"$out/$name.oci.tar"
	"${podman[@]}" manifest rm "$list" >/dev/null
}

# image NAME PLATFORM DIRECTORY [OPTION...]
image() {
	echo "release: image $1 for $2" >&2
	local ref=$tag-$1:${2//\//-}
	images+=("$ref")
	"${podman[@]}" build --quiet --layers=false --timestamp "$epoch" --platform "$2" \
		--build-arg "VERSION=$version" --build-arg "REVISION=$revision" --tag "$ref" \
		"${build_options[@]}" "${@:4}" "$3" >/dev/null
}

# The images hold the programs from above: the stage that would compile them again is replaced by a directory.
for platform in "${platforms[@]}"; do
	image iptables-wrapper "$platform" . --build-context "build=$scratch/$platform" --build-arg BUILDPLATFORM=linux/amd64
done
# Now, because podman without layers removes the image of a stage that adds nothing to it: the wrapper's, below.
archive iptables-wrapper "${platforms[@]}"

for platform in "${distroless[@]}"; do
	IFS=/ read -r os arch variant <<<"$platform"
	base=${BASE:+--build-arg=BASE=${BASE//\{arch\}/$arch}}
	image iptables-wrapper-distroless "$platform" images/distroless ${base:+"$base"} \
		--build-arg "WRAPPER=$tag-iptables-wrapper:${platform//\//-}"
	container=$("${podman[@]}" create "$tag-iptables-wrapper-distroless:${platform//\//-}")
	"${podman[@]}" export "$container" | release/packages.sh "$version" >"$out/iptables-wrapper-distroless-$os-$arch.cdx.json"
	"${podman[@]}" rm "$container" >/dev/null
done
((!${#distroless[@]})) || archive iptables-wrapper-distroless "${distroless[@]}"

(cd "$out" && sha256sum -- * >SHA256SUMS)
# Under sudo, the files are for the user who called it.
[ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$out"
echo "release: $version is in dist/" >&2
