// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/iptables-wrappers/iptables-wrappers"

// A wrapped call pays for what it links: nothing on its way brings in the command line's library, JSON or os/exec.
func TestImports(t *testing.T) {
	for _, from := range []string{"detect", "exec", "internal/call"} {
		output, err := exec.Command("go", "list", "-f", `{{join .Deps " "}}`, "./"+from).Output()
		if err != nil {
			t.Fatal(err)
		}
		brought := strings.Fields(string(output))
		if !slices.Contains(brought, module+"/internal/nft") {
			t.Errorf("%s brings in %q, not even the questions to nf_tables", from, brought)
		}
		for _, unwanted := range []string{"encoding/json", "os/exec", "net", "github.com/urfave/cli/v2"} {
			if slices.Contains(brought, unwanted) {
				t.Errorf("%q brings in %q", from, unwanted)
			}
		}
	}
}
