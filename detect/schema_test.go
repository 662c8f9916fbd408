// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The JSON form of a result is what docs/detect.schema.json promises, whatever was asked and found, and the schema
// promises something.
func TestSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../docs/detect.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text []byte) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
	host.Netns(t)
	var all, remembered string
	for _, situation := range []string{
		":",
		"nft add table ip nat; nft add chain ip nat mine '{ type nat hook prerouting priority 0; }'; nft add rule ip nat mine accept",
		"nft add table inet firewalld",
		"iptables-nft -A INPUT -j ACCEPT",
		"ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY",
		"iptables-legacy -t security -A INPUT -j ACCEPT",
		"iptables-nft -t mangle -N KUBE-KUBELET-CANARY",
		"iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
		"ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT",
	} {
		host.Run(t, "sh", "-ec", situation)
		for _, q := range []detect.Query{
			{}, {Override: detect.NFT}, {Override: detect.Legacy, Everything: true}, {Remembered: detect.Memory{Mode: detect.NFT}},
			{Remembered: detect.Memory{Mode: detect.Legacy, Reason: detect.RuleCount, Conclusive: true, Because: "legacy has rules", Since: time.Unix(1, 0)}},
			{Installed: detect.NFT},
			{DryRun: true}, {DryRun: true, NAT: true, Everything: true},
		} {
			text, err := json.Marshal(q.Run())
			if err == nil {
				err = valid(text)
			}
			if err != nil {
				t.Errorf("%s, %+v: %v\n%s", situation, q, err, text)
			}
			if all = string(text); q.Remembered.Conclusive && situation == ":" {
				remembered = all
			}
		}
	}
	for old, broken := range map[string]string{
		`"version":2`: `"version":1`, `"nft"`: `"nftables"`, `"rules":{"min":0`: `"rules":{"min":"0"`, `"rules":{"min":1`: `"rules":{"most":1`,
		`"conclusive"`: `"certain"`, `"hint":"yes"`: `"hint":true`, `"canary":"no"`: `"canary":"none"`, `"name":"mangle"`: `"name":"broute"`,
		`"reason":"rule-count","conclusive":true`: `"reason":"lot","conclusive":true`, `"since":"`: `"since":"on `, `"because":"`: `"because":null,"":"`,
		`"native":["inet `: `"native":["`,
		`"hint-in-both"`:   `"strange"`, `"name":"xt match"`: `"name":"match"`, `"has":"yes"`: `"has":"perhaps"`, `"foreign":[{"table":`: `"foreign":[{"chain":`,
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

// An error is its text in JSON, and a number of rules says what is known of it.
func TestJSON(t *testing.T) {
	e := detect.Evidence{Rules: detect.Count{Min: 2, Max: detect.Unbounded}}
	text, err := json.Marshal(e)
	if want := `"rules":{"min":2}`; err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "error") {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	host.Netns(t)
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capset(&header, &data[0]); err != nil { // of this thread, which is not used again
		t.Fatal(err)
	}
	text, err = json.Marshal(detect.Host())
	if want := `"error":"ask nf_tables for chain \"KUBE-IPTABLES-HINT\": operation not permitted"`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}
