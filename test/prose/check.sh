#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Misspelled words, and the phrases in the file beside this one: they are literal translations, invented, or advertising. A part of
# "make lint".
set -euo pipefail
cd "$(dirname "$0")/../.."

mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.md' '*.go' '*.sh' '*.yml' '*.yaml' '*.txtar' '*.tmpl' '*Dockerfile' Makefile |
	grep -v '/testdata/' | while read -r file; do [ ! -e "$file" ] || printf '%s\n' "$file"; done)
go run github.com/golangci/misspell/cmd/misspell@v0.8.0 -error "${files[@]}"
if grep -nEi -f test/prose/phrases -- "${files[@]}"; then
	echo "prose: say it another way, or remove the phrase from test/prose/phrases if it is good English here" >&2
	exit 1
fi
