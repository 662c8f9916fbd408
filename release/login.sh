# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Sourced by push.sh and sign.sh: logs in to REGISTRY as REGISTRY_USER with REGISTRY_TOKEN, for podman and cosign, until the script
# ends. Without a user, it does not log in.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT # with the registry's password
read -ra podman <<<"${PODMAN:-podman}"
if [ -n "${REGISTRY_USER:-}" ]; then
	# podman reads the first, cosign the second: the same file.
	export REGISTRY_AUTH_FILE=$scratch/config.json DOCKER_CONFIG=$scratch
	"${podman[@]}" login --username "$REGISTRY_USER" --password-stdin "${REGISTRY%%/*}" <<<"$REGISTRY_TOKEN"
fi
