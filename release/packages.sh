#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the SBOM of the distroless image, whose root file system is the tar archive on standard input: packages.sh VERSION.
# The wrapper's own modules are in iptables-wrapper.cdx.json.
set -euo pipefail
version=${1:?usage: packages.sh VERSION}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tar -C "$root" -x var/lib/dpkg/status.d etc/os-release usr/lib/os-release
release=debian-$(. "$root/etc/os-release" && echo "$VERSION_ID")
packages=("$root"/var/lib/dpkg/status.d/*)
awk -v version="$version" -v release="$release" '
	BEGIN {
		print "{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.6\",\n  \"version\": 1,"
		printf "  \"metadata\": {\"component\": {\"type\": \"container\", \"name\": \"iptables-wrapper-distroless\", \"version\": \"%s\"}},\n", version
		printf "  \"components\": [\n    {\"type\": \"application\", \"name\": \"iptables-wrapper\", \"version\": \"%s\", " \
			"\"purl\": \"pkg:golang/github.com/iptables-wrappers/iptables-wrappers@%s\"}", version, version
	}
	function component() {
		if (name == "") return
		url = package_version
		gsub(/\+/, "%2B", url)
		gsub(/:/, "%3A", url)
		printf ",\n    {\"type\": \"library\", \"name\": \"%s\", \"version\": \"%s\", \"purl\": \"pkg:deb/debian/%s@%s?arch=%s&distro=%s\"}",
			name, package_version, name, url, package_arch, release
		name = ""
	}
	FNR == 1 { component() }
	/^Package: / { name = $2 }
	/^Version: / { package_version = $2 }
	/^Architecture: / { package_arch = $2 }
	END { component(); print "\n  ]\n}" }
' "${packages[@]}"
