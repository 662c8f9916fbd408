// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// uses has a rule for each match and target that doctor looks for.
var uses = map[string]string{
	"addrtype":   "-A INPUT -m addrtype --dst-type LOCAL",
	"comment":    "-A INPUT -m comment --comment x",
	"conntrack":  "-A INPUT -m conntrack --ctstate NEW",
	"mark":       "-A INPUT -m mark --mark 1",
	"multiport":  "-A INPUT -p tcp -m multiport --dports 1,2",
	"owner":      "-A OUTPUT -m owner --uid-owner 1",
	"statistic":  "-A INPUT -m statistic --mode nth --every 2 --packet 0",
	"tcp":        "-A INPUT -p tcp -m tcp --dport 1",
	"udp":        "-A INPUT -p udp -m udp --dport 1",
	"CONNMARK":   "-t mangle -A INPUT -j CONNMARK --restore-mark",
	"DNAT":       "-t nat -A PREROUTING -p tcp -j DNAT --to-destination :1",
	"MARK":       "-t mangle -A INPUT -j MARK --set-mark 1",
	"MASQUERADE": "-t nat -A POSTROUTING -j MASQUERADE",
	"REDIRECT":   "-t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 1",
	"REJECT":     "-A INPUT -j REJECT",
	"SNAT":       "-t nat -A POSTROUTING -p tcp -j SNAT --to-source :1",
}

// hidden hides the lists of x_tables, as on a host that has never used iptables-legacy: then nf_tables is asked.
var hidden = []string{
	"strace", "-f", "-o", "trace", "-e", "trace=openat", "-e", "inject=openat:error=ENOENT",
	"-P", "/proc/thread-self/net/ip_tables_matches", "-P", "/proc/thread-self/net/ip_tables_targets",
	"-P", "/proc/thread-self/net/ip6_tables_matches", "-P", "/proc/thread-self/net/ip6_tables_targets",
}

// What doctor says of each match and target is what happens when iptables itself uses it, in both backends, with and
// without the lists of x_tables. Where a module may bring it, doctor does not know.
func TestExtensions(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "iptables-wrapper", "install")
	t.Chdir(t.TempDir())
	for _, before := range [][]string{nil, hidden} {
		judgeExtensions(t, before)
	}
	trace := string(host.Read(t, "trace"))
	if strings.Count(trace, "(INJECTED)") != 4 {
		t.Errorf("the lists are not hidden: %s", trace)
	}
}

// judgeExtensions runs doctor, with other words before the command.
func judgeExtensions(t *testing.T, before []string) {
	t.Helper()
	command := append(slices.Clone(before), "iptables-wrapper", "doctor", "-o", "json")
	output, _ := exec.Command(command[0], command[1:]...).Output()
	var report struct {
		Extensions []struct{ Family, Name, Has string }
	}
	host.Check(t, json.Unmarshal(output, &report))
	if len(report.Extensions) != 2*len(uses) {
		t.Errorf("%d extensions, and there are rules for %d", len(report.Extensions), len(uses))
	}
	known := 0
	for _, x := range report.Extensions {
		rule, found := uses[x.Name]
		if !found {
			t.Errorf("no rule for %s", x.Name)
			continue
		}
		if x.Has == "unknown" {
			continue
		}
		known++
		command := map[string]string{"ipv4": "iptables", "ipv6": "ip6tables"}[x.Family]
		for _, backend := range []string{"legacy", "nft"} {
			said, err := exec.Command(command+"-"+backend, strings.Fields(rule)...).CombinedOutput()
			works := err == nil
			native := backend == "nft" && x.Has == "no" // iptables-nft may need nothing from x_tables
			if works != (x.Has == "yes") && !native {
				t.Errorf("doctor says %q of %s %s, and iptables-%s: %v: "+
					"%s", x.Has, x.Family, x.Name, backend, err, said)
			}
		}
	}
	if known == 0 {
		t.Errorf("doctor knows nothing, after %q", before)
	}
}
