#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Copies the licence of this module to DIRECTORY, and to DIRECTORY/licenses those of what is linked in: Go, the command line,
# the system calls.
set -euo pipefail
out=${1:?usage: licenses.sh DIRECTORY}
mkdir -p "$out/licenses"
cp LICENSE "$out/"
cp "$(go env GOROOT)/LICENSE" "$out/licenses/go"
for module in github.com/urfave/cli/v2 golang.org/x/sys; do
	cp "$(go list -m -f '{{.Dir}}' "$module")/LICENSE" "$out/licenses/${module//\//-}"
done
