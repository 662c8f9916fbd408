// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// useOf is a rule that uses each extension that doctor asks for.
var useOf = map[string]string{
	"addrtype": "-A INPUT -m addrtype --dst-type LOCAL", "comment": "-A INPUT -m comment --comment x",
	"conntrack": "-A INPUT -m conntrack --ctstate NEW", "mark": "-A INPUT -m mark --mark 1",
	"multiport": "-A INPUT -p tcp -m multiport --dports 1,2", "owner": "-A OUTPUT -m owner --uid-owner 1",
	"physdev": "-A FORWARD -m physdev --physdev-is-bridged", "recent": "-A INPUT -m recent --set",
	"rpfilter": "-t raw -A PREROUTING -m rpfilter", "set": "-A INPUT -m set --match-set SET src",
	"socket": "-t mangle -A PREROUTING -m socket", "statistic": "-A INPUT -m statistic --mode nth --every 2 --packet 0",
	"CONNMARK": "-t mangle -A INPUT -j CONNMARK --restore-mark", "CT": "-t raw -A PREROUTING -j CT --notrack",
	"DNAT": "-t nat -A PREROUTING -p tcp -j DNAT --to-destination ADDRESS", "LOG": "-A INPUT -j LOG",
	"MARK": "-t mangle -A INPUT -j MARK --set-mark 1", "MASQUERADE": "-t nat -A POSTROUTING -j MASQUERADE",
	"NFLOG": "-A INPUT -j NFLOG", "REDIRECT": "-t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 1",
	"REJECT": "-A INPUT -j REJECT", "SNAT": "-t nat -A POSTROUTING -j SNAT --to-source ADDRESS",
	"TCPMSS": "-t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
	"TPROXY": "-t mangle -A PREROUTING -p tcp -j TPROXY --on-port 1",
}

// What doctor says of each match and target is what happens when iptables itself uses it.
func TestExtensions(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	output, _ := exec.Command("iptables-wrapper", "doctor", "-o", "json").Output()
	var report struct {
		Extensions []struct {
			Backend, Family, Name, Has string
		}
	}
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Extensions) != 4*len(useOf) {
		t.Errorf("%d extensions, and there are rules for %d", len(report.Extensions), len(useOf))
	}
	host.Run(t, "ipset", "create", "set4", "hash:ip")
	host.Run(t, "ipset", "create", "set6", "hash:ip", "family", "inet6")
	for _, x := range report.Extensions {
		program, set, address := "iptables-"+x.Backend, "set4", "192.0.2.1"
		if x.Family == "ipv6" {
			program, set, address = "ip6tables-"+x.Backend, "set6", "2001:db8::1"
		}
		rule := strings.NewReplacer("SET", set, "ADDRESS", address).Replace(useOf[x.Name])
		if useOf[x.Name] == "" {
			t.Errorf("no rule for %s", x.Name)
			continue
		}
		said, err := exec.Command(program, strings.Fields(rule)...).CombinedOutput()
		if works := err == nil; works != (x.Has == "yes") {
			t.Errorf("doctor says %q of %s in %s %s, and iptables says %v: %s", x.Has, x.Name, x.Backend, x.Family, err, said)
		}
	}
}
