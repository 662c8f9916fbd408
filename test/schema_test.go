// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What detect -o json prints is what docs/detect.schema.json promises, whatever can be read. That the schema promises
// something is tested beside the library.
func TestSchema(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	schema, err := jsonschema.NewCompiler().Compile("../docs/detect.schema.json")
	host.Check(t, err)
	putWrapper(t, wrapperFile)
	valid := func(output []byte) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(output)))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
	situations := [][]string{
		{"true"},
		{"iptables-nft", "-A", "INPUT", "-j", "ACCEPT"},
		{"ip6tables-legacy", "-t", "mangle", "-N", "KUBE-KUBELET-CANARY"},
		{"iptables-legacy", "-t", "security", "-A", "INPUT", "-j", "ACCEPT"},
		{"iptables-nft", "-t", "mangle", "-N", "KUBE-KUBELET-CANARY"},
		{"iptables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"},
		{"ip6tables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"},
	}
	var last []byte
	for _, s := range situations {
		host.Run(t, s[0], s[1:]...)
		for _, user := range [][]string{nil, {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, {"env", "IPTABLES_WRAPPER_MODE=nft"}} {
			args := append(user, "iptables-wrapper", "detect", "-o", "json")
			output, err := exec.Command(args[0], args[1:]...).Output()
			if err != nil {
				t.Fatalf("%v: %v", args, err)
			}
			if err := valid(output); err != nil {
				t.Errorf("%v, %v: %v\n%s", s, args, err, output)
			}
			last = output
		}
	}
	if !strings.Contains(string(last), `"network"`) || !strings.Contains(string(last), `"here"`) || valid([]byte(strings.Replace(string(last), `"how"`, `"why"`, 1))) == nil {
		t.Errorf("what the command adds to the library's form is not checked:\n%s", last)
	}
}
