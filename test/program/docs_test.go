// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each indented line of a page that begins with "$ " is run, in order, and must print the indented lines below it. What
// a page needs before is in comments that begin with "run:". With -update the output is written into the page instead.
func TestDocs(t *testing.T) {
	for _, file := range []string{
		"../../README.md", "../../docs/install.md", "../../docs/troubleshooting.md",
		"../../docs/how-it-works.md",
	} {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			installed(t)
			text := host.Read(t, file)
			got, ran := play(t, string(text))
			if ran == 0 {
				t.Error("the page shows no command")
			}
			if !*update {
				for _, difference := range differences(string(text), got) {
					t.Error(difference)
				}
				if t.Failed() {
					t.Errorf("%s: not what its commands print. If that is meant:\n"+
						"go test ./test/program -run TestDocs -update", strings.TrimPrefix(file, "../../"))
				}
			} else if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What differs from run to run: the number of a network namespace, the kernel, the release of iptables, and the commit
// of this program.
var differs = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`(net:\[|iptables-backend-)[0-9]{10}\b`), "${1}4026531840"},
	{regexp.MustCompile(`(?m)^(kernel: +)\S+`), "${1}6.12.48"},
	{regexp.MustCompile(`\b(iptables v)1\.8\.[0-9]+`), "${1}1.8.9"},
	{regexp.MustCompile(`(github\.com/\S+/blob/)\w+/`), "${1}main/"},
}

// play runs the commands of a page and returns the page with their output.
func play(t *testing.T, text string) (page string, ran int) {
	t.Helper()
	var lines []string
	shown := false // the lines are a command's output
	for line := range strings.SplitSeq(text, "\n") {
		command, isCommand := strings.CutPrefix(line, "    $ ")
		setup, isSetup := strings.CutPrefix(line, "<!-- run: ")
		switch {
		case isCommand:
			output, _ := exec.Command("sh", "-c", "exec 2>&1; "+command).Output()
			for _, d := range differs {
				output = d.pattern.ReplaceAll(output, []byte(d.same))
			}
			lines = append(lines, line)
			if text := strings.TrimRight(string(output), "\n"); text != "" {
				for l := range strings.SplitSeq(text, "\n") {
					lines = append(lines, strings.TrimRight("    "+l, " "))
				}
			}
			shown = true
			ran++
		case shown && strings.HasPrefix(line, "    "):
		case shown && line == "": // perhaps within the output
			if lines[len(lines)-1] != "" {
				lines = append(lines, "")
			}
		default:
			if shown && lines[len(lines)-1] != "" {
				lines = append(lines, "")
			}
			shown = false
			if isSetup {
				host.Run(t, "sh", "-c", strings.TrimSuffix(setup, " -->"))
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n"), ran
}

// differences returns the commands of two versions of a page whose output differs.
func differences(want, got string) (all []string) {
	wanted, gotten := strings.Split(want, "\n    $ "), strings.Split(got, "\n    $ ")
	for i := range min(len(wanted), len(gotten)) {
		if wanted[i] != gotten[i] {
			all = append(all, "got\n    $ "+gotten[i]+"\nwant\n    $ "+wanted[i])
		}
	}
	return all
}

// The code on docs/library.md is that of the examples, which tests run.
func TestLibraryPage(t *testing.T) {
	const name = "../../docs/library.md"
	const file = "exec/example_test.go"
	function := regexp.MustCompile(`(?ms)^func ExampleFind\(\) \{\n(.*?)^\}$`).
		FindStringSubmatch(read(t, filepath.Join("../..", file)))
	if function == nil {
		t.Fatalf("%s has no ExampleFind", file)
	}
	body := regexp.MustCompile(`(?m)^\t`).ReplaceAllString(function[1], "")
	host.PageHolds(t, name, file, "```go\n"+body+"```\n", *update)
}

// The demonstration does what the README says, and changes nothing outside.
func TestDemo(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	t.Setenv("TMPDIR", "/run") // which the demonstration covers with its own
	before := snapshot(t)
	output := host.Run(t, "../demo.sh")
	for _, want := range []string{
		"chain KUBE-IPTABLES-HINT of kubelet is in legacy's mangle table (IPv4)",
		"chain KUBE-IPTABLES-HINT of kubelet is in nft's mangle table (IPv4)",
		"iptables-restore   resolves to /usr/sbin/xtables-legacy-multi",
		"iptables-restore   resolves to /usr/sbin/xtables-nft-multi",
		"-A FORWARD -s 192.0.2.1/32 -m comment --comment demo -j DROP",
		`
  host: legacy   image: nft      without wrapper,  rule: nft     wrong
  host: legacy   image: both     with wrapper,     rule: legacy  right
  host: nft      image: legacy   without wrapper,  rule: legacy  wrong
  host: nft      image: both     with wrapper,     rule: nft     right
With the wrapper, in the backend of both hosts. Without it, in the other one, with status 0.
`,
	} {
		if !strings.Contains(output, want) {
			t.Errorf("it does not show %q:\n%s", want, output)
		}
	}
	if after := snapshot(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// README's table of hosts and images is what the script prints.
func TestMatrix(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	t.Setenv("TMPDIR", "/run") // which the script covers with its own
	before := snapshot(t)
	host.PageHolds(t, "../../README.md", "made by: test/matrix.sh", host.Run(t, "../matrix.sh"), *update)
	if after := snapshot(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// snapshot is all that a detector could change: tables, modules, processes, files. There is no /proc/modules where the
// kernel can load none; then there is none to be loaded.
func snapshot(t *testing.T) string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	host.Check(t, err)
	return strings.Join(processes, "\n") + "\n" + host.Run(t, "sh", "-c", `
		for f in /proc/net/ip_tables_names /proc/net/ip6_tables_names /proc/modules; do echo "$f:"; cat $f 2>&1; done
		nft list ruleset
		ls -A /dev; ls -lA --time-style=full-iso /usr/sbin /etc/alternatives | cksum`)
}
