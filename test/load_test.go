// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const loadAtOnce = 50

// loadCalls is how many calls are made on each host.
func loadCalls() int { return host.Number(300, 2500) }

// load is what many calls cost: for docs/evidence/faults.md, and compared with nothing.
type load struct {
	KiB     int // resident in the wrapper, just before it becomes the program
	Slowest time.Duration
}

// Five thousand calls on a read-only root, fifty at a time, while others change rules: each gives the status and the output
// of the direct call.
func TestLoad(t *testing.T) {
	results, outside := resultsDir(t)
	if outside {
		defer func() {
			var most load
			for _, content := range readResults(t, results) {
				var l load
				if err := json.Unmarshal(content, &l); err != nil {
					t.Fatal(err)
				}
				most = load{max(most.KiB, l.KiB), max(most.Slowest, l.Slowest)}
			}
			section(t, "load", 2*loadCalls(), "calls under load", fmt.Sprintf("On a read-only root, %d at a time, on a host of each mode, while others changed rules. Each had the status\nand the output of the direct call. A wrapper process uses %.1f MiB; the slowest call took %d ms.",
				loadAtOnce, float64(most.KiB)/1024, most.Slowest.Milliseconds()))
		}()
	}
	inBothModes(t, func(t *testing.T, mode string) {
		host.Run(t, "sh", "-ec", `for i in 1 2 3; do iptables-$0 -w -A INPUT -s 192.0.2.$i -j ACCEPT; ip6tables-$0 -w -A INPUT -s 2001:db8::$i -j DROP; done`, mode)
		readOnly(t)
		commands := [][]string{
			{"iptables", "-w", "-S", "INPUT"},
			{"ip6tables", "-w", "-S", "INPUT"},
			{"iptables", "-w", "-C", "INPUT", "-s", "192.0.2.2", "-j", "ACCEPT"},
			{"iptables", "-w", "-C", "INPUT", "-s", "192.0.2.9", "-j", "ACCEPT"},
			{"iptables-restore", "--test", "--nonsense"},
			{"ip6tables", "--version"},
		}
		var want [][]byte
		result := func(wrapped bool, args []string) []byte {
			cmd := call(mode, wrapped, args[0], args[1:]...)
			var output bytes.Buffer
			cmd.Stdout, cmd.Stderr = &output, &output
			_ = cmd.Run()
			return fmt.Appendf(output.Bytes(), "\nstatus %d", cmd.ProcessState.ExitCode())
		}
		for _, args := range commands {
			want = append(want, result(false, args))
		}
		if !strings.Contains(string(want[0]), "192.0.2.3") || !strings.HasSuffix(string(want[3]), "status 1") {
			t.Fatalf("the commands are not what the test is about: %q", want)
		}
		others := exec.Command("sh", "-c", `while iptables-$0 -w -t nat -A OUTPUT -j ACCEPT && iptables-$0 -w -t nat -F OUTPUT &&
			iptables-$0 -w -t mangle -N X && iptables-$0 -w -t mangle -X X; do :; done`, mode)
		if err := others.Start(); err != nil {
			t.Fatal(err)
		}
		work := make(chan int)
		var mutex sync.Mutex
		var most load
		var workers sync.WaitGroup
		for range loadAtOnce {
			workers.Go(func() {
				for i := range work {
					which := i % len(commands)
					start := time.Now()
					got := result(true, commands[which])
					took := time.Since(start)
					if !slices.Equal(got, want[which]) {
						t.Errorf("%q: got %q, want %q", commands[which], got, want[which])
					}
					mutex.Lock()
					most.Slowest = max(most.Slowest, took)
					mutex.Unlock()
				}
			})
		}
		for i := range loadCalls() {
			work <- i
		}
		close(work)
		workers.Wait()
		_ = others.Process.Kill()
		if err := others.Wait(); others.ProcessState.ExitCode() != -1 {
			t.Errorf("the others ended: %v", err)
		}
		wantNames(t, wrapperFile)
		most.KiB = residentInWrapper(t)
		content, err := json.Marshal(most)
		if err != nil {
			t.Fatal(err)
		}
		putResult(t, results, mode, content)
		t.Logf("%+v", most)
	})
}

// residentInWrapper returns the largest resident set of a wrapper, in KiB. Strace holds it at its execve for a moment.
func residentInWrapper(t *testing.T) (most int) {
	t.Helper()
	strace := exec.Command("strace", "-qq", "-o", "/dev/null", "-e", "inject=execve:delay_enter=200ms", "/usr/sbin/iptables", "--version")
	if err := strace.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- strace.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil || most == 0 {
				t.Errorf("%s: %v", strace, err)
			}
			return most
		default:
		}
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", strace.Process.Pid))
		for _, file := range children {
			child, _ := os.ReadFile(file) // it may be gone
			pid := strings.TrimSpace(string(child))
			if exe, err := os.Readlink("/proc/" + pid + "/exe"); err != nil || exe != wrapperFile {
				continue
			}
			status, _ := os.ReadFile("/proc/" + pid + "/status")
			for line := range strings.Lines(string(status)) {
				if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
					kib, err := strconv.Atoi(strings.Fields(value)[0])
					if err != nil {
						t.Fatal(err)
					}
					most = max(most, kib)
				}
			}
		}
	}
}
