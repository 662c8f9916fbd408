// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/evidence/clients.md")

// The page has the clients that are run. That nothing differs is what TestClients expects.
func TestPage(t *testing.T) {
	const file = "../../docs/evidence/clients.md"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(was), "\n| client ")
	is := head + "\n| client | from |\n| --- | --- |\n"
	for _, c := range all {
		is += fmt.Sprintf("| %s | %s |\n", c.name, cmp.Or(c.pkg, c.module))
	}
	if *update {
		if err := os.WriteFile(file, []byte(is), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if is != string(was) {
		t.Errorf("%s has %s\nwant %s", file, was, is)
	}
}

// The example in docs/library.md is the function that TestLibrary runs.
func TestLibraryPage(t *testing.T) {
	const program = "kubernetes/library-kubernetes/main.go"
	source, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?ms)^func useHostBackend\(.*?^}\n`).FindString(string(source))
	if function == "" || !strings.Contains(string(text), "```go\n"+function+"```") {
		t.Errorf("docs/library.md does not have this function of %s:\n%s", program, function)
	}
}
