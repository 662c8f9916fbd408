#!/bin/sh
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

set -eu
export IPTABLES_WRAPPER_MODE="${IPTABLES_MODE:-auto}"
exec "$@"
