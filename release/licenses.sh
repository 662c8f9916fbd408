#!/bin/sh
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the licenses of this module, of Go, and of the modules that the binary says are linked into it: licenses.sh BINARY.
set -eu
binary=${1:?usage: release/licenses.sh BINARY}
print() { printf '==== %s ====\n\n' "$1" && cat "$2" && echo; }
print github.com/iptables-wrappers/iptables-wrappers LICENSE
print Go "$(go env GOROOT)/LICENSE"
for module in $(go version -m "$binary" | awk '$1 == "dep" { print $2 }'); do
	print "$module" "$(go list -m -f '{{.Dir}}' "$module")/LICENSE"
done
