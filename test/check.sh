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

# The reason is the last line that a test has logged before it is skipped.
awk '
	/^=== (RUN|CONT|NAME) / { test = $3; next }
	/^=== |^PASS$|\[no test files\]$|^ *--- PASS: / { next }
	/^ *--- SKIP: / {
		skipped++
		sub(/fork\/exec [^ ]*: /, "", logged[$3])
		count[logged[$3]]++
		next
	}
	/^ +[a-z0-9_]+\.go:[0-9]+: / { line = $0; sub(/^ +[a-z0-9_]+\.go:[0-9]+: /, "", line); logged[test] = line }
	'"$([ "$status" = 0 ] && echo '!/^ok/ { next }')"'
	{ print }
	END {
		if (!skipped) exit
		print skipped " tests were skipped:"
		for (reason in count) print "  " count[reason] ": " reason
	}
' "$log"
exit "$status"
