// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package detectors compares how programs find the host's backend; compare.sh does it.
package detectors

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) { host.Main(m) }

// docs/evidence/comparison.md says what this project answers on each host, and calls it wrong where it is. The other
// detectors are not in this repository, so nothing here compares their columns.
func TestOursOnPage(t *testing.T) {
	host.NeedsRoot(t, "make namespaces")
	host.Needs(t, "iptables-nft", "iptables-legacy", "ipset", "nft", "unshare")
	wrapper, err := host.Wrapper()
	host.Check(t, err)
	cmd := exec.Command("./compare.sh")
	only, hosts := "^ten rules|its own", 6
	if host.All() {
		only, hosts = "", 89
	}
	cmd.Env = append(os.Environ(), "DETECTORS=ours", "WRITE=", "ONLY="+only, "IPTABLES_WRAPPER="+wrapper)
	got := answers(host.Output(t, cmd))
	want := answers(host.PagePart(t, string(host.Read(t, "../../docs/evidence/comparison.md")), "table"))
	if len(got) < hosts {
		t.Errorf("only %d hosts", len(got))
	}
	for name, answer := range got {
		if want[name] != answer {
			t.Errorf("%s: the page says %q, and it is %q", name, want[name], answer)
		}
	}
	for name := range want {
		if host.All() && got[name] == "" {
			t.Errorf("there is no host %q", name)
		}
	}
}

// answers returns the third cell of each row of a table, by the first two.
func answers(table string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) > 4 && !strings.Contains(line, "---") && !strings.Contains(line, "wrong, of") {
			all[strings.TrimSpace(cells[1])+": "+strings.TrimSpace(cells[2])] = strings.TrimSpace(cells[3])
		}
	}
	return all
}
