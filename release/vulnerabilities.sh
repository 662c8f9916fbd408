#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Asks govulncheck about a binary: vulnerabilities.sh VERSION BINARY DIRECTORY. It writes govulncheck.txt, what govulncheck prints, and
# iptables-wrapper.openvex.json, a statement for each vulnerability of what the binary is made of. Status 3: the binary has vulnerable
# code. SECURITY.md says what follows.
#
# VULNDB   another database, such as file:///DIRECTORY
set -euo pipefail
version=${1:?usage: release/vulnerabilities.sh VERSION BINARY DIRECTORY}
binary=$(realpath "${2:?usage: release/vulnerabilities.sh VERSION BINARY DIRECTORY}")
out=$(realpath "${3:?usage: release/vulnerabilities.sh VERSION BINARY DIRECTORY}")
cd "$(dirname "$0")/.."
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
GOBIN=$tool go install golang.org/x/vuln/cmd/govulncheck@v1.3.0 # "go run" has a status of its own
options=(-mode=binary -db "${VULNDB:-https://vuln.go.dev}")

status=0
"$tool/govulncheck" "${options[@]}" -show version "$binary" >"$out/govulncheck.txt" || status=$?
sed -i "s|$(dirname "$binary")/||" "$out/govulncheck.txt"
cat "$out/govulncheck.txt"
((status == 0 || status == 3)) || exit "$status"

# govulncheck knows neither the author nor the product.
repository=github.com/iptables-wrappers/iptables-wrappers
"$tool/govulncheck" "${options[@]}" -format openvex "$binary" |
	sed "s|\"author\": \"Unknown Author\"|\"author\": \"$repository\"|; s|\"@id\": \"Unknown Product\"|\"@id\": \"pkg:golang/$repository@$version\"|" \
		>"$out/iptables-wrapper.openvex.json"
exit "$status"
