#!/bin/sh
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

set -eu
case ${DOCKER_IPTABLES_LEGACY-auto} in
auto) ;;
'') export IPTABLES_WRAPPER_BACKEND=nft ;;
*) export IPTABLES_WRAPPER_BACKEND=legacy ;;
esac
exec "$@"
