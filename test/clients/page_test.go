// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write docs/evidence/clients.md")

const evidence = "../../docs/evidence/clients.md"

// page collects the differences for docs/evidence/clients.md.
type page struct {
	mu    sync.Mutex
	runs  map[string]int
	lines map[string][]string
}

func (p *page) add(c client, b box, differences []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs, p.lines = map[string]int{}, map[string][]string{}
	}
	p.runs[c.name]++
	for _, d := range differences {
		p.lines[c.name] = append(p.lines[c.name], fmt.Sprintf("%s: `%s`", b, d))
	}
}

// check compares the page with the results of clients that ran in all situations. Versions are not compared, because Debian
// updates its packages. With -update, check writes these clients' rows and keeps the others.
func (p *page) check(t *testing.T) {
	was, err := os.ReadFile(evidence)
	if err != nil && !*update {
		t.Fatal(err)
	}
	found, err := versions(shared.rootfs)
	if err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	s.WriteString(head)
	for _, c := range all {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(c.name) + ` \|.*\n`).FindString(string(was))
		if p.runs[c.name] == len(situations) {
			version := found[c.pkg]
			if c.module != "" {
				version = moduleVersion(t, c)
			}
			differs := strings.Join(p.lines[c.name], "<br>")
			if differs == "" {
				differs = "nothing"
			}
			is := fmt.Sprintf("| %s | %s | %s |\n", c.name, version, differs)
			if !*update && withoutVersion(row) != withoutVersion(is) {
				t.Errorf("%s has %q, want %q: TEST_ALL=1 make test-clients TESTFLAGS=-update", evidence, row, is)
			}
			row = is
		}
		s.WriteString(row)
	}
	if *update {
		if err := os.WriteFile(evidence, []byte(s.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const head = `# Real clients, directly and wrapped

Written by ` + "`TEST_ALL=1 make test-clients TESTFLAGS=-update`" + `, with the iptables and the packages of Debian 13. Each client ran in 14
situations: on hosts with kubelet's hint, with Docker's rules and with those of a real node, each in nft and in legacy, and on an
empty one; with a writable root and a read-only one. After each of its steps, the test compared its exit status,
its output, all rules of both families in both backends, and the tables that existed.

| client | version | what differs |
| --- | --- | --- |
`

func withoutVersion(row string) string {
	return regexp.MustCompile(`^(\| [^|]+ \| )[^|]+`).ReplaceAllString(row, "$1")
}

func moduleVersion(t *testing.T, c client) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Version}}", c.module)
	cmd.Dir = filepath.Dir(c.script)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return strings.TrimSpace(string(output))
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
