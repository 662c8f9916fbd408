// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// node is a host's network namespace.
type node struct{ name string }

// newNode makes a host that uses a mode: kubelet's hint is in it, and the other backend has more rules.
func newNode(tb testing.TB, mode string) node {
	tb.Helper()
	n := bareNode(tb)
	var rules strings.Builder
	rules.WriteString("*filter\n")
	for i := range 20 {
		fmt.Fprintf(&rules, "-A INPUT -s 198.51.100.%d -j DROP\n", i)
	}
	rules.WriteString("COMMIT\n")
	n.feed(tb, rules.String(), "iptables-"+other(mode)+"-restore")
	n.feed(tb, "", "ip6tables-"+mode, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	return n
}

// bareNode has nothing in it.
func bareNode(tb testing.TB) node {
	tb.Helper()
	possible(tb)
	nodes.Lock()
	nodes.made++
	n := node{fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), nodes.made)}
	nodes.Unlock()
	host.Run(tb, "ip", "netns", "add", n.name)
	tb.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", n.name).Run() })
	return n
}

var nodes struct {
	sync.Mutex
	made int
}

// feed runs iptables or a restore on the node. It waits for the xtables lock, which the whole machine shares.
func (n node) feed(tb testing.TB, stdin, name string, args ...string) string {
	tb.Helper()
	return host.Feed(tb, stdin, "ip", append([]string{"netns", "exec", n.name, name, "--wait"}, args...)...)
}

func (n node) network() string { return "--network=ns:/run/netns/" + n.name }

func other(mode string) string {
	if mode == "nft" {
		return "legacy"
	}
	return "nft"
}
