// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func ExampleHost() {
	r := detect.Host()
	if !r.Conclusive {
		fmt.Println("a guess:", r)
		return
	}
	fmt.Println(r)
}

// A program that knows of a kubelet on this host gives it a minute.
func ExampleWaitKubelet() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := detect.WaitKubelet(ctx)
	if err != nil {
		fmt.Println("no chains of kubelet:", err)
	}
	fmt.Println("using", r)
}

func TestExamples(t *testing.T) {
	host.Netns(t)
	if got := host.Printed(t, ExampleHost); !strings.HasPrefix(got, "a guess: nft: ") {
		t.Errorf("got %q", got)
	}
	host.Run(t, "ip6tables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	const because = "legacy: chain KUBE-IPTABLES-HINT is in legacy's mangle table (IPv6)\n"
	if got := host.Printed(t, ExampleHost); got != because {
		t.Errorf("got %q", got)
	}
	if got := host.Printed(t, ExampleWaitKubelet); got != "using "+because {
		t.Errorf("got %q", got)
	}
}
