// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
)

// Capture is an answer of a real kernel, kept in testdata/*.txtar with the commands that made it:
//
//	-- made-by --   shell commands
//	-- kernel --    uname -r, iptables --version
//	-- question --  nft chain|rules FAMILY TABLE, or legacy FAMILY TABLE
//	-- header --    legacy only: struct ipt_getinfo
//	-- answer --    what the kernel said, in the layout of a 64-bit little-endian machine
//	-- want --      what must be read from it
type Capture struct {
	File           string
	Question       []string
	Header, Answer []byte
	Want           string
}

// Captures reads those that match a pattern.
func Captures(tb testing.TB, pattern string) (all []Capture) {
	tb.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		tb.Fatalf("no captured answers %s: %v", pattern, err)
	}
	for _, file := range files {
		parts := map[string]string{}
		part := ""
		for line := range strings.Lines(string(Read(tb, file))) {
			if name, begins := strings.CutPrefix(line, "-- "); begins {
				part = strings.TrimSuffix(name, " --\n")
				continue
			}
			parts[part] += line
		}
		decode := func(name string) []byte {
			b, err := hex.DecodeString(strings.Join(strings.Fields(parts[name]), ""))
			Check(tb, err)
			return b
		}
		all = append(all, Capture{
			File: file, Question: strings.Fields(parts["question"]),
			Header: decode("header"), Answer: decode("answer"), Want: parts["want"],
		})
	}
	return all
}
