#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Signs dist/SHA256SUMS, and the images that push.sh pushed, with the identity of the workflow that runs it.
#
# REGISTRY, REGISTRY_USER, REGISTRY_TOKEN   as for push.sh: the registry keeps the images' signatures
# COSIGN                                    the cosign command: what runs here may write, so nothing is compiled here
set -euo pipefail
cd "$(dirname "$0")/.."

: "${REGISTRY:?REGISTRY is not set}"
read -ra cosign <<<"${COSIGN:-cosign}"
(cd dist && sha256sum --quiet --check SHA256SUMS)
. release/login.sh

while read -r digest image; do
	"${cosign[@]}" sign --yes "$image@sha256:$digest"
done <dist/images.sha256
"${cosign[@]}" sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS
