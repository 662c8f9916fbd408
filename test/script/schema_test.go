// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What detect and doctor print with -o json is what their schemas promise, healthy or not, and the schemas promise
// something.
func TestSchemas(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "iptables-wrapper", "install")
	const base = "https://raw.githubusercontent.com/iptables-wrappers/iptables-wrappers/main/docs/"
	files := map[string]string{"detect": "detect.v3.schema.json", "doctor": "doctor.v5.schema.json"}
	compiler := jsonschema.NewCompiler()
	schemas := map[string]*jsonschema.Schema{}
	for _, command := range []string{"detect", "doctor"} { // the second refers to the first
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(host.Read(t, "../../docs/"+files[command])))
		host.Check(t, err)
		host.Check(t, compiler.AddResource(base+files[command], value))
		schemas[command], err = compiler.Compile(base + files[command])
		host.Check(t, err)
	}
	valid := func(command, output string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(output))
		host.Check(t, err)
		return schemas[command].Validate(value)
	}
	last := map[string]string{}
	for _, situation := range []string{
		"true",
		"iptables-nft -A INPUT -j ACCEPT",
		"ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY",
		"iptables-legacy -t security -A INPUT -j ACCEPT",
		"iptables -A INPUT -j ACCEPT",
		"iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
		"ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT",
		"ip6tables-nft -t mangle -X KUBE-IPTABLES-HINT; iptables-wrapper select --mode nft",
		"rm /usr/sbin/xtables-legacy-multi",
		"ln -sf /gone /usr/sbin/ip6tables",
	} {
		host.Run(t, "sh", "-c", situation)
		for _, user := range []string{
			"",
			"setpriv --reuid=65534 --regid=65534 --clear-groups",
			"env IPTABLES_WRAPPER_MODE=nft",
		} {
			for command := range schemas {
				// doctor's status is 1 if there is a problem
				output, _ := exec.Command("sh", "-c", user+" iptables-wrapper "+command+" -o json").Output()
				last[command] = string(output)
				if err := valid(command, last[command]); err != nil {
					t.Errorf("%s, %s: %v\n%s", situation, user, err, output)
				}
			}
		}
	}
	for command, changes := range map[string]map[string]string{
		"detect": {
			`"how": `: `"why": `,
		},
		"doctor": {
			`"version": 5`:          `"version": 4`,
			`"severity": "problem"`: `"severity": "fatal"`,
			`"fix": "`:              `"advice": "`,
			`"code": "`:             `"name": "`,
			`"where": "`:            `"where": "in the `,
			`"differs": `:           `"different": `,
			`"CAP_NET_RAW"`:         `"CAP_NET"`,
			`"name": "ip6tables"`:   `"name": "ip7tables"`,
			`"has": "yes"`:          `"has": true`,
			`"namespace"`:           `"netns"`,
		},
	} {
		for old, broken := range changes {
			text := strings.Replace(last[command], old, broken, 1)
			if text == last[command] {
				t.Errorf("%s: no %s in %s", command, old, text)
			} else if valid(command, text) == nil {
				t.Errorf("%s: %s is valid", command, broken)
			}
		}
	}
}
