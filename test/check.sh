#!/bin/sh
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Runs "go test", and prints how many tests were skipped, and why: check.sh [ARGUMENT...]. Go itself prints that only
# with -v, among everything else.
set -eu

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
go test -v "$@" >"$log" 2>&1 || status=$?
if [ "$status" = 0 ]; then
	grep '^ok' "$log" || true
else
	cat "$log"
fi
# The reason is the last line that a test has logged before it is skipped.
awk '
	/^ +[a-z0-9_]+\.go:[0-9]+: / { reason = $0; sub(/^ +[a-z0-9_]+\.go:[0-9]+: /, "", reason) }
	/^ *--- SKIP: / { skipped++; count[reason]++ }
	END {
		if (skipped == 0) exit
		print skipped " tests were skipped:"
		for (reason in count) print "  " count[reason] ": " reason
	}
' "$log"
exit "$status"
