// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Twenty first calls that write a rule and twenty that read, at once, beside a process that fills a backend: whichever
// backend the first of them takes, all of them take, with a writable and with a read-only root. The same holds if each call is
// held for a moment just before the memory is made or the switch is renamed, and if kubelet's hint existed before. Of 600
// such calls that write, in thirty rounds, iptables-wrappers v3 lost 14.
func TestFirstCallsAtOnce(t *testing.T) {
	for _, race := range []struct {
		doc, evidence string
		readOnly      bool
		hold          string // a system call that is held up
		few, all      int    // rounds
	}{
		{"writable root", "", false, "", 3, 30},
		{"read-only root", "", true, "", 3, 30},
		{"hint", "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT", false, "", 3, 30},
		{"writable root, held before the memory", "", false, "symlinkat", 1, 30},
		{"read-only root, held before the memory", "", true, "symlinkat", 1, 30},
		{"hint, held before the rename", "ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT", false, "renameat", 1, 30},
	} {
		t.Run(race.doc, func(t *testing.T) {
			t.Parallel()
			if !host.Contain(t) {
				return
			}
			installed(t)
			if race.evidence != "" {
				host.Run(t, "sh", "-c", race.evidence)
			}
			if race.readOnly {
				host.Run(t, "mount", "-o", "remount,bind,ro", "/usr/sbin")
			}
			decided := map[string]int{}
			rounds := host.Number(race.few, race.all)
			if host.Nightly() {
				rounds = 100
			}
			for round := range rounds {
				decided[firstCalls(t, round, race.hold, race.evidence != "")]++
				if t.Failed() {
					return
				}
			}
			t.Logf("rounds by backend: %v", decided)
			if race.evidence != "" && len(decided) != 1 {
				t.Errorf("with a hint, rounds were decided differently: %v", decided)
			}
		})
	}
}

// firstCalls is one round. It returns the backend that all calls wrote to.
func firstCalls(t *testing.T, round int, hold string, hint bool) string {
	t.Helper()
	forget(t)
	clear := `for m in nft legacy; do iptables-$m -w -F; ip6tables-$m -w -F; done`
	host.Run(t, "sh", "-ec", clear)
	// The other process fills legacy's nat table in a network namespace that was empty.
	filler := exec.Command("sh", "-ec", `for i in $(seq 6); do iptables-legacy -w -t nat -A OUTPUT -d 192.0.2.$i -j RETURN; done`)
	start := make(chan struct{})
	var calls sync.WaitGroup
	for i := range 40 {
		name := []string{"iptables", "/usr/sbin/iptables", "/sbin/ip6tables", "iptables-restore", "/usr/sbin/ip6tables"}[i%5]
		args := []string{name, "-w", "-A", "INPUT", "-s", fmt.Sprintf("10.0.%d.%d", round, i), "-j", "DROP"}
		stdin := ""
		switch {
		case i >= 20 && strings.HasSuffix(name, "tables"):
			args = []string{name, "-w", "-S", "INPUT"}
		case i >= 20:
			args = []string{"iptables-save"}
		case strings.HasSuffix(name, "ip6tables"):
			args[5] = fmt.Sprintf("2001:db8::%x:%x", round, i)
		case name == "iptables-restore":
			args = []string{name, "-w", "--noflush"}
			stdin = fmt.Sprintf("*filter\n-A INPUT -s 10.0.%d.%d -j DROP\nCOMMIT\n", round, i)
		}
		if hold != "" && i%4 == 0 {
			args = append([]string{"strace", "-qq", "-o", "/dev/null", "-e", "trace=" + hold, "-e", "inject=" + hold + ":delay_enter=20ms"}, args...)
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin = strings.NewReader(stdin)
		calls.Go(func() {
			<-start
			// iptables-nft warns of legacy tables by itself.
			if output, err := cmd.CombinedOutput(); err != nil || i < 20 && strings.Contains(string(output), "iptables-wrapper") {
				t.Errorf("%s: %v: %q", cmd, err, output)
			}
		})
	}
	calls.Go(func() {
		<-start
		if output, err := filler.CombinedOutput(); !hint && err != nil {
			t.Errorf("%s: %v: %s", filler, err, output)
		}
	})
	close(start)
	calls.Wait()
	wrote := map[string]int{}
	for _, mode := range []string{"nft", "legacy"} {
		rules := host.Run(t, "iptables-"+mode, "-w", "-S", "INPUT") + host.Run(t, "ip6tables-"+mode, "-w", "-S", "INPUT")
		if n := strings.Count(rules, "-j DROP"); n > 0 {
			wrote[mode] = n
		}
	}
	if len(wrote) != 1 || wrote["nft"]+wrote["legacy"] != 20 {
		t.Errorf("round %d: of 20 rules, these are in each backend: %v", round, wrote)
	}
	for mode := range wrote {
		if got := host.Run(t, "iptables", "--version"); !strings.Contains(got, version[mode]) {
			t.Errorf("round %d: the rules are in %s, and the next call says %s", round, mode, got)
		}
		return mode
	}
	return ""
}

// forget undoes what first calls do, on a read-only root too: as a new container would be, without a new process 1.
func forget(t *testing.T) {
	t.Helper()
	memories, err := filepath.Glob("/dev/shm/iptables-wrapper.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, memory := range memories {
		if err := os.Remove(memory); err != nil {
			t.Fatal(err)
		}
	}
	if end("iptables") != wrapperFile {
		host.Run(t, "iptables-wrapper", "reset")
	}
	host.Run(t, "sh", "-c", "iptables-legacy -w -t nat -F OUTPUT")
}

// noLitter checks that no temporary link is left.
func noLitter(t *testing.T) {
	t.Helper()
	if left := litter(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Names that are moved back and forth are never missing. With iptables-wrappers v3 the name is not there in 4 of 5 looks.
func TestNamesAreAlwaysThere(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range host.Number(50, 300) {
			for _, args := range [][]string{{"select", "--mode", "nft"}, {"select", "--mode", "legacy"}, {"reset"}} {
				if output, err := exec.Command("iptables-wrapper", args...).CombinedOutput(); err != nil {
					t.Errorf("%v: %v: %s", args, err, output)
				}
			}
		}
	}()
	looks, missing := host.Watch(done, names)
	if missing != nil {
		t.Fatalf("look %d: %v", looks, missing)
	}
	t.Logf("%d looks", looks)
	noLitter(t)
}
