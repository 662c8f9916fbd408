// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// generation is nf_tables' own count of commits.
func generation(t *testing.T) uint32 {
	var p nftProbe
	defer p.conn.Close()
	var id uint32
	err := p.ask(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(m netlink.Message) error {
		id = m.Attributes().Number(unix.NFTA_GEN_ID)
		return nil
	})
	if err != nil || id == 0 {
		t.Fatal(id, err)
	}
	return id
}

// Dry runs leave nothing behind, and are in nobody's way: beside them a process replaces its rule set, each of its
// commits succeeds, and nobody sees any other.
func TestDryRunLeavesNoTrace(t *testing.T) {
	runs := 50
	if host.All() {
		runs = 1000
	}
	host.Netns(t)
	state := func() string {
		return host.Run(t, "sh", "-c", `
			nft list ruleset; nft list hooks 2>&1
			cat /proc/thread-self/net/ip_tables_names /proc/thread-self/net/ip6_tables_names
			cat /proc/sys/net/netfilter/nf_conntrack_count /proc/modules 2>&1; :`)
	}
	host.Run(t, "iptables-nft", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE") // loads what a nat chain needs
	before := state()

	seen := filepath.Join(t.TempDir(), "seen")
	file, err := os.Create(seen)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	monitor := exec.Command("nft", "monitor")
	monitor.Stdout, monitor.Stderr = file, file
	if err := monitor.Start(); err != nil {
		t.Fatal(err)
	}
	defer monitor.Wait()
	defer monitor.Process.Kill()
	// monitored waits until the monitor, which takes its time, has seen a text, and returns all of it.
	monitored := func(want string, until func()) string {
		for range 1000 {
			until()
			content, err := os.ReadFile(seen)
			if err != nil || strings.Contains(string(content), want) {
				return string(content)
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("nft monitor has not seen %q", want)
		return ""
	}
	monitored("table ip ready", func() { host.Run(t, "nft", "add table ip ready; delete table ip ready") })
	first := generation(t)

	// It is started by this thread, which is in the namespace, and commits once for each line that it is given.
	writer := exec.Command("sh", "-c", `while read n; do printf 'add table ip other
flush table ip other
add chain ip other c%s
add rule ip other c%s counter accept
' $n $n | nft -f - 2>&1 && echo done; done`)
	lines, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	stop, commits := make(chan bool), make(chan uint32)
	var committed atomic.Uint32
	go func() {
		said, n := bufio.NewScanner(output), uint32(0)
		for {
			select {
			case <-stop:
				lines.Close()
				writer.Wait()
				commits <- n
				return
			default:
			}
			n++
			fmt.Fprintln(lines, n%10)
			if !said.Scan() || said.Text() != "done" {
				t.Errorf("commit %d: %s", n, said.Text())
				<-stop
				commits <- n
				return
			}
			committed.Store(n)
		}
	}()
	for i := 0; (i < runs || committed.Load() < 10) && !t.Failed(); i++ {
		r := Query{DryRun: true, NAT: true, Everything: true}.Ask()
		if r.Err() != nil || r.NFT[IPv4].Lacks+r.NFT[IPv6].Lacks != "" {
			t.Errorf("got %+v, %v", r.NFT, r.Err())
		}
	}
	close(stop)
	n := <-commits
	if got := generation(t); got != first+n {
		t.Errorf("%d commits made %d generations", n, got-first)
	}
	host.Run(t, "nft", "delete table ip other")
	if after := state(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	last := generation(t)
	text := monitored(fmt.Sprintf("# new generation %d ", last), func() {})
	for g := first + 1; g <= last; g++ {
		if strings.Count(text, fmt.Sprintf("# new generation %d ", g)) != 1 {
			t.Errorf("of %d commits, nft monitor has not seen generation %d", n, g)
		}
	}
	if strings.Contains(text, dryRunTable) || strings.Contains(text, fmt.Sprintf("# new generation %d ", last+1)) {
		t.Errorf("%d commits, and nft monitor has seen\n%s", n, text)
	}
}
