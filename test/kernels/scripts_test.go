// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// hostStates are the scripts of test/script that are about what a host is. They run in the guest, unchanged, on every
// kernel, with the amd64 build and the 386 build.
var hostStates = []string{
	"as-user", "canary", "detect-netns", "detect-output", "docker-host", "hint", "hint-against-canary", "hint-in-both", "ipv6-off",
	"large-rule", "no-net-admin", "no-net-raw", "nodes", "nothing-on-the-host", "other-namespace", "rule-count", "undecodable-rule",
	"user-namespace", "wrong-chains",
}

// exception is a script that a kernel cannot run, and why not. It must fail there.
type exception struct{ kernel, build, script, why string }

var exceptions = []exception{}

var builds = []string{"amd64", "386"}

// runScripts is what the guest does.
func runScripts() error {
	if err := os.Chdir("/test"); err != nil {
		return err
	}
	for _, build := range builds {
		if err := os.Setenv("IPTABLES_WRAPPER", "/wrapper/"+build); err != nil {
			return err
		}
		if err := run("scripts "+build, "", "/test/test", "-test.v", "-test.run=^TestScript$/^("+strings.Join(hostStates, "|")+")$"); err != nil {
			return err
		}
	}
	return nil
}

// judgeScripts returns what is wrong with how the scripts went, and the row for the page.
func (c came) judgeScripts(told []step) (row, wrong []string) {
	if len(told) != len(builds) {
		return nil, []string{fmt.Sprintf("the scripts ran %d times, not with each of %q", len(told), builds)}
	}
	said := fmt.Sprintf("%d scripts pass with each build", len(hostStates))
	for i, s := range told {
		results := map[string]string{}
		for _, match := range regexp.MustCompile(`(?m)^    --- (PASS|FAIL|SKIP): TestScript/(\S+) `).FindAllStringSubmatch(s.Stdout, -1) {
			results[match[2]] = match[1]
		}
		for _, script := range hostStates {
			e := slices.IndexFunc(exceptions, func(e exception) bool {
				return e.kernel == c.name && e.build == builds[i] && e.script == script
			})
			switch got := results[script]; {
			case got == "PASS" && e >= 0:
				wrong = append(wrong, fmt.Sprintf("%s passes with the %s build: it is no exception any more", script, builds[i]))
			case got == "FAIL" && e >= 0:
				said += fmt.Sprintf(", but for %s with %s: %s", script, builds[i], exceptions[e].why)
			case got != "PASS":
				wrong = append(wrong, fmt.Sprintf("%s with the %s build: %q\n%s", script, builds[i], got, about(s.Stdout, script)))
			}
		}
	}
	return []string{"scripts of test/script", said, "", "", "", "", ""}, wrong
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
