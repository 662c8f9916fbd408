// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
	"github.com/iptables-wrappers/iptables-wrappers/test/page"
)

// The results of fault injection are in docs/evidence/faults.md, a section for each test.

var update = flag.Bool("update", false, "write the results to docs/evidence/faults.md")

const faultsPage = "../docs/evidence/faults.md"

// section writes the result of a test that ran in full into its section of the page, if that was asked for.
func section(t *testing.T, name string, count int, what, text string) {
	t.Helper()
	if t.Failed() || !*update || os.Getpid() == 1 { // the first process of a test's container
		return
	}
	if !host.All() {
		t.Fatalf("%s is about the full numbers: run the tests by make test-faults TESTFLAGS=-update", faultsPage)
	}
	content := host.Read(t, faultsPage)
	text = fmt.Sprintf("**%s %s.** %s\n", thousands(count), what, strings.TrimSpace(text))
	host.Check(t, os.WriteFile(faultsPage, []byte(page.Replace(t, string(content), name, text)), 0o644))
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
