// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The JSON form of a result is what docs/detect.v3.schema.json promises, whatever was asked and found, and the schema
// promises something.
func TestSchemaOfResult(t *testing.T) {
	schema := compile(t, false)["detect"]
	valid := func(text []byte) error { return validate(t, schema, string(text)) }
	host.Netns(t)
	certain := detect.Memory{
		Mode:       detect.Legacy,
		Reason:     detect.RuleCount,
		Conclusive: true,
		Because:    "legacy has rules",
		Since:      time.Unix(1, 0),
	}
	var all, remembered string
	for _, situation := range []string{
		":",
		"nft add table ip nat; nft add chain ip nat mine '{ type nat hook prerouting priority 0; }'; " +
			"nft add rule ip nat mine accept",
		"nft add table inet firewalld; nft add table ip security '{ flags dormant; }'",
		"iptables-nft -A INPUT -j ACCEPT",
		"ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY",
		"iptables-legacy -t security -A INPUT -j ACCEPT",
		"iptables-nft -t mangle -N KUBE-KUBELET-CANARY",
		"iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
		"ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT",
	} {
		host.Run(t, "sh", "-ec", situation)
		for _, q := range []detect.Query{
			{},
			{Override: detect.NFT},
			{Override: detect.Legacy, Everything: true},
			{Remembered: detect.Memory{Mode: detect.NFT}},
			{Remembered: certain},
			{Installed: detect.NFT},
			{DryRun: true},
			{DryRun: true, NAT: true, Everything: true},
		} {
			text, err := json.Marshal(q.Run())
			if err == nil {
				err = valid(text)
			}
			if err != nil {
				t.Errorf("%s, %+v: %v\n%s", situation, q, err, text)
			}
			all = string(text)
			if q.Remembered.Conclusive && situation == ":" {
				remembered = all
			}
		}
	}
	for old, broken := range map[string]string{
		`"version":3`:      `"version":2`,
		`"nft"`:            `"nftables"`,
		`"rules":{"min":0`: `"rules":{"min":"0"`,
		`"rules":{"min":1`: `"rules":{"most":1`,
		`"conclusive"`:     `"certain"`,
		`"hint":"yes"`:     `"hint":true`,
		`"canary":"no"`:    `"canary":"none"`,
		`"name":"mangle"`:  `"name":"broute"`,
		`"reason":"rule-count","conclusive":true`: `"reason":"lot","conclusive":true`,
		`"since":"`:            `"since":"on `,
		`"because":"`:          `"because":null,"":"`,
		`"native":["inet `:     `"native":["`,
		`"hint-in-both"`:       `"strange"`,
		`"name":"xt-match"`:    `"name":"match"`,
		`"has":"yes"`:          `"has":"perhaps"`,
		`"foreign":[{"table":`: `"foreign":[{"chain":`,
		`"kind":"dormant"`:     `"kind":"asleep"`,
	} {
		whole := all
		if !strings.Contains(all, old) {
			whole = remembered
		}
		text := strings.Replace(whole, old, broken, 1)
		if text == whole {
			t.Errorf("no %s in %s", old, whole)
		} else if valid([]byte(text)) == nil {
			t.Errorf("%s is valid", broken)
		}
	}
}

// Where the host shows nothing, a call also goes by what is installed, and detect.Host does not: its comment says so. A
// query that is told so agrees with the call.
func TestHostBesideCall(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "iptables-wrapper", "install")
	agree := func(r detect.Result) bool {
		t.Helper()
		kind := map[detect.Mode]string{detect.NFT: "(nf_tables)", detect.Legacy: "(legacy)"}[r.Mode]
		return strings.HasSuffix(host.Run(t, "iptables", "--version"), kind+"\n")
	}
	if r := detect.Host(); !agree(r) {
		t.Errorf("nothing on the host: Host says %v", r)
	}
	host.Run(t, "rm", "/usr/sbin/xtables-nft-multi")
	if r := detect.Host(); r.Mode != detect.NFT || agree(r) {
		t.Errorf("legacy alone is installed: Host says %v", r)
	}
	if r := (detect.Query{Installed: detect.Legacy}).Run(); !agree(r) {
		t.Errorf("legacy alone is installed: a query says %v", r)
	}
	host.Run(t, "iptables-legacy", "-A", "INPUT", "-j", "ACCEPT")
	if r := detect.Host(); !agree(r) {
		t.Errorf("a rule in legacy: Host says %v", r)
	}
}
