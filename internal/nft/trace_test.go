// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nft

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// generation returns nf_tables' own count of commits.
func generation(t *testing.T) (id uint32) {
	t.Helper()
	var c Conn
	defer c.Close()
	err := c.ask(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(m Message) error {
		id = m.Attributes().Number(unix.NFTA_GEN_ID)
		return nil
	})
	if err != nil || id == 0 {
		t.Fatalf("got generation %d, %v", id, err)
	}
	return id
}

// ruleset returns all that a dry run could leave behind.
func ruleset(t *testing.T) string {
	t.Helper()
	return host.Run(t, "sh", "-c", `
		nft list ruleset; nft list hooks 2>&1
		cat /proc/thread-self/net/ip_tables_names /proc/thread-self/net/ip6_tables_names
		cat /proc/sys/net/netfilter/nf_conntrack_count /proc/modules 2>&1; :`)
}

// monitor is a running "nft monitor", which prints each commit, some time later.
type monitor struct{ file string }

// start starts it, and waits until it sees what happens.
func startMonitor(t *testing.T) monitor {
	t.Helper()
	m := monitor{file: t.TempDir() + "/seen"}
	file, err := os.Create(m.file)
	host.Check(t, err)
	defer file.Close()
	cmd := exec.Command("nft", "monitor")
	cmd.Stdout = file
	cmd.Stderr = file
	host.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	m.until(t, "table ip ready", func() { host.Run(t, "nft", "add table ip ready; delete table ip ready") })
	return m
}

// until does something again and again, until the monitor has seen a text, and returns all that it has seen.
func (m monitor) until(t *testing.T, want string, do func()) string {
	t.Helper()
	for range 3000 {
		do()
		seen := string(host.Read(t, m.file))
		if strings.Contains(seen, want) {
			return seen
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("nft monitor has not seen %q", want)
	return ""
}

// writer is a process that replaces its rules again and again.
type writer struct {
	cmd     *exec.Cmd
	begin   io.WriteCloser
	outcome *bufio.Scanner
	commits int
}

// startWriter starts one on the calling thread, whose namespace it is in. It commits once for each line that it reads.
func startWriter(t *testing.T) *writer {
	t.Helper()
	cmd := exec.Command("sh", "-c", `while read n; do printf 'add table ip other
flush table ip other
add chain ip other c%s
add rule ip other c%s counter accept
' $n $n | nft -f - 2>&1 && echo done; done`)
	begin, err := cmd.StdinPipe()
	host.Check(t, err)
	output, err := cmd.StdoutPipe()
	host.Check(t, err)
	host.Check(t, cmd.Start())
	return &writer{cmd: cmd, begin: begin, outcome: bufio.NewScanner(output)}
}

// commit begins a commit, makes dry runs while it lasts, and returns how many.
func (w *writer) commit(t *testing.T, dryRun func()) (runs int) {
	t.Helper()
	w.commits++
	_, err := fmt.Fprintln(w.begin, w.commits%10)
	host.Check(t, err)
	done := make(chan string)
	go func() {
		w.outcome.Scan()
		done <- w.outcome.Text()
	}()
	for {
		select {
		case text := <-done:
			if text != "done" {
				t.Fatalf("commit %d: %s", w.commits, text)
			}
			return runs
		default:
			dryRun()
			runs++
		}
	}
}

// Dry runs leave nothing behind, and are in nobody's way: beside them a process replaces its rules, each of its commits
// succeeds, and nobody sees any other commit.
func TestDryRunLeavesNoTrace(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE") // loads what a nat chain needs
	before := ruleset(t)
	m := startMonitor(t)
	first := generation(t)
	w := startWriter(t)
	runs := 0
	for w.commits < 10 || runs < host.Number(50, 1000) {
		runs += w.commit(t, func() {
			var c Conn
			defer c.Close()
			lacks, err := c.Lacks(false)
			if lacks != "" || err != nil {
				t.Errorf("got %q, %v", lacks, err)
			}
		})
	}
	host.Check(t, w.begin.Close())
	host.Check(t, w.cmd.Wait())
	commits := uint32(w.commits)
	if got := generation(t); got != first+commits {
		t.Errorf("%d commits made %d generations", commits, got-first)
	}
	host.Run(t, "nft", "delete table ip other")
	if after := ruleset(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	last := generation(t)
	seen := m.until(t, fmt.Sprintf("# new generation %d ", last), func() {})
	for g := first + 1; g <= last; g++ {
		if strings.Count(seen, fmt.Sprintf("# new generation %d ", g)) != 1 {
			t.Errorf("of %d commits, nft monitor has not seen generation %d", commits, g)
		}
	}
	if strings.Contains(seen, dryRunTable) || strings.Contains(seen, fmt.Sprintf("# new generation %d ", last+1)) {
		t.Errorf("%d commits, and nft monitor has seen\n%s", commits, seen)
	}
}
