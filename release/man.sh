#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the manual page, which is what the program itself prints for --help, and the files beside this one: man.sh BINARY VERSION.
# SOURCE_DATE_EPOCH is its date.
set -euo pipefail
binary=$(realpath "${1:?usage: man.sh BINARY VERSION}")
version=${2:?usage: man.sh BINARY VERSION}
cd "$(dirname "$0")/.."

# page MACRO: help on stdin, as the body of a page whose headings are made by that macro.
page() {
	awk -v macro="$1" '
		function text(line) { gsub(/\\/, "\\e", line); gsub(/-/, "\\-", line); return line ~ /^[.\x27]/ ? "\\&" line : line }
		function close_literal() { if (literal) print ".fi"; literal = 0 }
		/^[A-Z ]+:$/ {
			close_literal()
			heading = substr($0, 1, length($0) - 1)
			if (heading == "USAGE") heading = "SYNOPSIS"
			if (macro == ".SH" || heading != "NAME") print macro, "\"" heading "\""
			paragraph = 0
			next
		}
		heading == "NAME" && macro != ".SH" { next }
		$0 == "" { close_literal(); paragraph = 1; next }
		{
			sub(/^   /, "")
			# Filled is a description, except the examples in it. All else stands as it is printed.
			filled = heading == "NAME" || heading == "DESCRIPTION" && $0 !~ /^   /
			if (filled) close_literal()
			if (paragraph && printed == heading) print ".PP" # not between a heading and its text
			if (!filled && !literal) { print ".nf"; literal = 1 }
			print text($0)
			paragraph = 0
			printed = heading
		}
		END { close_literal() }'
}

printf '.TH IPTABLES-WRAPPER 8 %s "%s" "System Administration"\n' "$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%F)" "$version"
"$binary" --help | page .SH
cat release/files.8
for command in $("$binary" --help | sed -n '/^COMMANDS:/,/^$/s/^   \([a-z]*\) .*/\1/p'); do
	[ "$command" != help ] || continue
	printf '.SH "IPTABLES\\-WRAPPER %s"\n' "${command^^}"
	"$binary" "$command" --help | sed -n 's/^   iptables-wrapper [a-z]* - \(.*\)/\1./p'
	"$binary" "$command" --help | page .SS
done
cat release/examples.8
