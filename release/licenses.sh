#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Copies the licence of this module to the directory of BINARY, and to licenses/ there those of what is linked into it: Go, and
# the modules that the binary itself names.
set -euo pipefail
binary=${1:?usage: licenses.sh BINARY}
out=$(dirname "$binary")
mkdir -p "$out/licenses"
cp LICENSE "$out/"
cp "$(go env GOROOT)/LICENSE" "$out/licenses/go"
mapfile -t modules < <(go version -m "$binary" | awk '$1 == "dep" { print $2 }')
for module in "${modules[@]}"; do
	cp "$(go list -m -f '{{.Dir}}' "$module")/LICENSE" "$out/licenses/${module//\//-}"
done
