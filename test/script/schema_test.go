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

// What detect and doctor print with -o json is what their schemas promise, healthy or not.
func TestSchemas(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "iptables-wrapper", "install")
	schemas := compile(t)
	valid := func(command, output string) error {
		return validate(t, schemas[command], output)
	}
	users := []string{"", "setpriv --reuid=65534 --regid=65534 --clear-groups", "env IPTABLES_WRAPPER_BACKEND=nft"}
	for i, situation := range []string{
		"true",
		"ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY",
		"iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
		"ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT",
		"ip6tables-nft -t mangle -X KUBE-IPTABLES-HINT; iptables-wrapper select nft",
		"rm /usr/sbin/xtables-legacy-multi",
		"ln -sf /gone /usr/sbin/ip6tables",
	} {
		host.Run(t, "sh", "-c", situation)
		user := users[i%len(users)]
		for command := range schemas {
			// doctor's status is 1 if there is a problem
			output, _ := exec.Command("sh", "-c", "exec "+user+" iptables-wrapper "+command+" -o json").Output()
			if err := valid(command, string(output)); err != nil {
				t.Errorf("%s, %s: %v\n%s", situation, user, err, output)
			}
		}
	}
}

// compile returns the schemas, by command. A list of words in them is complete, as it must be for what this
// program prints.
func compile(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	const base = "https://raw.githubusercontent.com/iptables-wrappers/iptables-wrappers/main/docs/"
	compiler := jsonschema.NewCompiler()
	schemas := map[string]*jsonschema.Schema{}
	for _, command := range []string{"detect", "doctor"} { // doctor's refers to the other one
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(host.Read(t, "../../docs/"+command+".schema.json")))
		host.Check(t, err)
		definitions, has := value.(map[string]any)["$defs"].(map[string]any)
		if has {
			definitions["later"] = false
		}
		host.Check(t, compiler.AddResource(base+command+".schema.json", value))
		schemas[command], err = compiler.Compile(base + command + ".schema.json")
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
