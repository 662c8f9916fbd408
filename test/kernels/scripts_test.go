// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// hostStates are the scripts of test/script that are about what a host is. They run in the guest, unchanged, on every
// kernel, with one of the builds.
var hostStates = []string{
	"as-user", "canary", "detect-netns", "detect-output", "docker-host", "hint", "hint-against-canary", "hint-in-both", "ipv6-off",
	"large-rule", "no-net-admin", "no-net-raw", "nodes", "nothing-on-the-host", "other-namespace", "rule-count", "undecodable-rule",
	"user-namespace", "wrong-chains",
}

var builds = []string{"amd64", "386"}

// runScripts is what the guest does.
func runScripts(build string) error {
	fmt.Println(stateMark + scripts)
	if err := os.Chdir("/test"); err != nil {
		return err
	}
	if err := os.Setenv("IPTABLES_WRAPPER", "/wrapper/"+build); err != nil {
		return err
	}
	return run(scripts, "", "/test/test", "-test.v", "-test.run=^TestScript$/^("+strings.Join(hostStates, "|")+")$")
}

func judgeScripts(t *testing.T, report []section) {
	if len(report) != 1 || len(report[0].steps) != 1 {
		t.Fatalf("the scripts ran in %d states, not in one", len(report))
	}
	output := report[0].steps[0].Stdout
	for _, script := range hostStates {
		if !strings.Contains(output, "    --- PASS: TestScript/"+script+" ") {
			t.Errorf("%s:\n%s", script, about(output, script))
		}
	}
}

// about is what the output of a test run says about one script.
func about(output, script string) string {
	_, part, _ := strings.Cut(output, "=== RUN   TestScript/"+script+"/")
	part, _, _ = strings.Cut(part, "\n=== ")
	if len(part) > 3000 {
		part = "[…]" + part[len(part)-3000:]
	}
	return part
}
