#!/bin/sh
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the version of a program that is built without git, in a container for example: a sum of the sources. To find the commit for a
# bug report, run it in checkouts.
set -eu
cd "$(dirname "$0")/.."
find main.go go.mod go.sum detect exec internal -type f \( -name '*.go' -o -name 'go.*' \) ! -name '*_test.go' |
	LC_ALL=C sort | xargs cat | sha256sum | sed 's/^\(.\{12\}\).*/source-\1/'
