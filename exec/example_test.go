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
	r, _ := detect.Host("") // the answer can be used, whatever could not be asked
	program, err := exec.Find(r.Backend, "iptables")
	if err != nil {
		fmt.Println(err)
		return
	}
	ipt, err := iptables.New(iptables.Path(program.Path))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = ipt.AppendUnique("filter", "INPUT", "-s", "192.0.2.1", "-j", "DROP")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added with", program.Path)
}

func TestExample(t *testing.T) {
	for _, backend := range []detect.Backend{detect.NFT, detect.Legacy} {
		t.Run(string(backend), func(t *testing.T) {
			defer runtime.UnlockOSThread()
			host.Netns(t)
			program := "iptables-" + string(backend)
			host.Run(t, program, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
			want := "added with /usr/sbin/" + program + "\n"
			if got := host.Printed(t, ExampleFind); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			rules := host.Run(t, program, "-S", "INPUT")
			if !strings.Contains(rules, "-s 192.0.2.1/32 -j DROP") {
				t.Errorf("rules: %s", rules)
			}
		})
	}
}
