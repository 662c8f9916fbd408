// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A table never looks empty while it is replaced.
func TestDumpRules(t *testing.T) {
	host.Netns(t)
	const script = "*filter\n-A INPUT -j DROP\nCOMMIT\n"
	host.Feed(t, script, "iptables-nft-restore")
	loop := exec.Command("sh", "-c", `while printf %s "$0" | iptables-nft-restore; do :; done`, script)
	host.Check(t, loop.Start())
	defer loop.Wait()
	defer loop.Process.Kill()
	var conn Conn
	defer conn.Close()
	for range host.Number(50_000, 1_000_000) {
		rules := 0
		err := conn.DumpRules(unix.NFPROTO_IPV4, "filter", func(Message) error {
			rules++
			return nil
		})
		if err != iptables.ErrChanged && (err != nil || rules != 1) {
			t.Fatalf("got %d rules, %v", rules, err)
		}
	}
}
