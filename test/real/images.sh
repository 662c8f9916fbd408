#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Builds each recipe of images/ from the base that it names, and plays the settings of test/images on it: images.sh [OPTION OF GO TEST...].
# It needs root and a registry.
#
# BASE   another base, which needs no registry; then -run has to choose the recipe that it is for
set -euo pipefail
export TEST_BASE=${BASE:-registry}
exec go -C "$(dirname "$0")/../images" test -count=1 -timeout 120m -run '^TestImages$' "$@" .
