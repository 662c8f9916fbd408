// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/coreos/go-iptables/iptables"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A Go program adds a rule with the host's backend, through go-iptables. That cannot use a multi-call program, such as
// xtables-nft-multi, which Find returns where nothing else is installed.
func ExampleFind() {
	path, err := exec.Find(detect.Host().Mode, "iptables")
	if err != nil {
		fmt.Println(err)
		return
	}
	ipt, err := iptables.New(iptables.Path(path))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := ipt.AppendUnique("filter", "INPUT", "-s", "192.0.2.1", "-j", "DROP"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added with", path)
}

func TestExample(t *testing.T) {
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy} {
		t.Run(string(mode), func(t *testing.T) {
			defer runtime.UnlockOSThread()
			host.Netns(t)
			program := "iptables-" + string(mode)
			host.Run(t, program, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
			if got, want := host.Printed(t, ExampleFind), "added with /usr/sbin/"+program+"\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if rules := host.Run(t, program, "-S", "INPUT"); !strings.Contains(rules, "-s 192.0.2.1/32 -j DROP") {
				t.Errorf("rules: %s", rules)
			}
		})
	}
}
