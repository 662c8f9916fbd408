// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
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
	schemas := compile(t, false)
	valid := func(command, output string) error {
		return validate(t, schemas[command], output)
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

// What a later program prints within a version, such as another reason, is valid for a user of today's schema.
func TestLaterWords(t *testing.T) {
	host.Netns(t)
	text, err := json.Marshal(detect.Host())
	host.Check(t, err)
	schema := compile(t, true)["detect"]
	for later, fits := range map[string]bool{
		`"reason":"moon-phase","more":{}`: true,
		`"reason":"phase of the moon"`:    false,
		`"reason":""`:                     false,
	} {
		changed := strings.Replace(string(text), `"reason":"default"`, later, 1)
		if changed == string(text) {
			t.Fatalf("another reason: %s", text)
		}
		if err := validate(t, schema, changed); (err == nil) != fits {
			t.Errorf("%s: got %v", later, err)
		}
	}
}

// compile returns the schemas of detect and doctor. Without later words, a list of words is complete, as it must be
// for what this program prints.
func compile(t *testing.T, later bool) map[string]*jsonschema.Schema {
	t.Helper()
	const base = "https://raw.githubusercontent.com/iptables-wrappers/iptables-wrappers/main/docs/"
	files := map[string]string{"detect": "detect.v3.schema.json", "doctor": "doctor.v5.schema.json"}
	compiler := jsonschema.NewCompiler()
	schemas := map[string]*jsonschema.Schema{}
	for _, command := range []string{"detect", "doctor"} { // the second refers to the first
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(host.Read(t, "../../docs/"+files[command])))
		host.Check(t, err)
		definitions, has := value.(map[string]any)["$defs"].(map[string]any)
		if has && !later {
			definitions["later"] = false
		}
		host.Check(t, compiler.AddResource(base+files[command], value))
		schemas[command], err = compiler.Compile(base + files[command])
		host.Check(t, err)
	}
	return schemas
}

func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	host.Check(t, err)
	return schema.Validate(value)
}
