// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A Go program loads rules with the host's backend.
func ExampleFind() {
	program, err := exec.Find(string(detect.Host().Mode), "iptables-restore")
	if err != nil {
		fmt.Println(err)
		return
	}
	cmd := osexec.Command(program, "--noflush")
	cmd.Args[0] = "iptables-restore" // a multi-call program goes by it
	cmd.Stdin = strings.NewReader("*filter\n-A INPUT -s 192.0.2.1 -j DROP\nCOMMIT\n")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("loaded by", program)
}

func TestExample(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-t", "mangle", "-N", detect.HintChain)
	if got, want := host.Printed(t, ExampleFind), "loaded by /usr/sbin/xtables-legacy-multi\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if rules := host.Run(t, "iptables-legacy", "-S", "INPUT"); !strings.Contains(rules, "-s 192.0.2.1/32 -j DROP") {
		t.Errorf("rules: %s", rules)
	}
}
