#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the manual page, which is what the program itself prints for --help: man.sh BINARY VERSION. SOURCE_DATE_EPOCH is its date.
set -euo pipefail
binary=$(realpath "${1:?usage: man.sh BINARY VERSION}")
version=${2:?usage: man.sh BINARY VERSION}

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
			next
		}
		heading == "NAME" && macro != ".SH" { next }
		{
			sub(/^   /, "")
			# Filled is a description, except the examples in it. All else stands as it is printed.
			filled = heading == "NAME" || heading == "DESCRIPTION" && $0 !~ /^   /
			if (filled || $0 == "") { close_literal() } else if (!literal) { print ".nf"; literal = 1 }
			print $0 == "" ? ".PP" : text($0)
		}
		END { close_literal() }'
}

printf '.TH IPTABLES-WRAPPER 8 %s "%s" "System Administration"\n' "$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%F)" "$version"
"$binary" --help | page .SH
for command in $("$binary" --help | sed -n '/^COMMANDS:/,/^$/s/^   \([a-z]*\) .*/\1/p'); do
	[ "$command" != help ] || continue
	printf '.SH "IPTABLES\\-WRAPPER %s"\n' "${command^^}"
	"$binary" "$command" --help | sed -n 's/^   iptables-wrapper [a-z]* - \(.*\)/\1./p'
	"$binary" "$command" --help | page .SS
done
