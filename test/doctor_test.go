// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What doctor -o json prints is what docs/doctor.schema.json promises, healthy or not, and the schema promises something.
func TestDoctorSchema(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"detect.schema.json", "doctor.schema.json"} {
		file, err := os.Open("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		value, err := jsonschema.UnmarshalJSON(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(schemaBase+name, value); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile(schemaBase + "doctor.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(output string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(output))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
	var last string
	for _, situation := range []string{
		"true", "iptables-nft -A INPUT -j ACCEPT", "iptables -A INPUT -j ACCEPT", "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
		"iptables-wrapper select --mode nft", "rm /usr/sbin/xtables-legacy-multi", "ln -sf /gone /usr/sbin/ip6tables",
	} {
		host.Run(t, "sh", "-c", situation)
		for _, user := range []string{"", "setpriv --reuid=65534 --regid=65534 --clear-groups", "env IPTABLES_WRAPPER_MODE=nft"} {
			output, _ := exec.Command("sh", "-c", user+" iptables-wrapper doctor -o json").Output() // status 1 if there is a problem
			if last = string(output); valid(last) != nil {
				t.Errorf("%s, %s: %v\n%s", situation, user, valid(last), last)
			}
		}
	}
	for old, broken := range map[string]string{
		`"version": 4`: `"version": 3`, `"severity": "problem"`: `"severity": "fatal"`, `"fix": "`: `"advice": "`, `"code": "`: `"name": "`,
		`"where": "`: `"where": "in the `, `"differs": `: `"differs": "not" `,
		`"CAP_NET_RAW"`: `"CAP_NET"`, `"name": "ip6tables"`: `"name": "ip7tables"`, `"has": "yes"`: `"has": true`, `"namespace"`: `"netns"`,
	} {
		text := strings.Replace(last, old, broken, 1)
		if text == last {
			t.Errorf("no %s in %s", old, last)
		} else if valid(text) == nil {
			t.Errorf("%s is valid", broken)
		}
	}
}

const schemaBase = "https://github.com/iptables-wrappers/iptables-wrappers/blob/main/docs/"

// A probe every few seconds must cost next to nothing: doctor --stale starts no process. How long it takes is logged.
func TestStaleIsFast(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	host.Run(t, "iptables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	trace := t.TempDir() + "/trace"
	host.Run(t, "strace", "-f", "-o", trace, "-e", "trace=execve,clone,clone3,fork,vfork", "iptables-wrapper", "doctor", "--stale")
	calls, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(calls)) {
		if strings.Contains(line, "execve(") && !strings.Contains(line, `"/usr/sbin/iptables-wrapper"`) {
			t.Errorf("it starts a process: %s", line)
		}
	}
	fastest := time.Hour
	for range 50 {
		start := time.Now()
		if err := exec.Command("iptables-wrapper", "doctor", "--stale").Run(); err != nil {
			t.Fatal(err)
		}
		fastest = min(fastest, time.Since(start))
	}
	t.Logf("doctor --stale: %s", fastest)
}
