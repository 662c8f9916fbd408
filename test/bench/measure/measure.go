// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Cost is what a call, or all calls of a row, took.
type Cost [5]float64

// The fields of Cost: times in milliseconds, page faults that read from a disk and that did not, and the largest
// resident set of a process in MiB, at least that of this one.
const (
	Wall = iota
	CPU
	Major
	Minor
	RSS
)

// Result is a row with all that was measured, by program. The samples of the same index were taken in the same round.
type Result struct {
	Row     Row
	Samples map[string][]Cost
	Calls   map[string]int // system calls until iptables begins
}

// Measure makes the host and measures.
func Measure(r Row, layer string) (Result, error) {
	result := Result{Row: r, Samples: map[string][]Cost{}, Calls: map[string]int{}}
	if err := makeHost(r, layer); err != nil {
		return result, err
	}
	direct := append([]string{"/usr/sbin/xtables-" + r.Backend + "-multi"}, command...)
	commands := map[string][]string{"direct": direct, "floor": append([]string{"/usr/sbin/floor"}, direct...)}
	if r.Saves {
		commands["saves"] = []string{"/bin/sh", "-ec",
			"iptables-nft-save; ip6tables-nft-save; iptables-legacy-save; ip6tables-legacy-save"}
	}
	for name, dir := range dirs {
		if _, err := os.Stat(dir + "/iptables-wrapper"); err != nil {
			continue // no revision to compare with
		}
		commands[name] = append([]string{dir + "/iptables"}, command[1:]...)
		if err := check(r, dir); r.MiB > 0 && err != nil {
			delete(commands, name) // it needs more; the page says that it fails
		} else if err != nil {
			return result, err
		}
	}
	for begin, round := time.Now(), 0; round < r.Rounds && (round < 5 || time.Since(begin) < r.AtMost); round++ {
		for _, name := range []string{"direct", "floor", "wrapped", "before", "saves"} {
			measured := commands[name]
			if measured == nil || name == "saves" && round%50 > 0 {
				continue
			}
			if err := ready(r, name); err != nil {
				return result, err
			}
			if round == 0 && name != "direct" && name != "saves" && r.AtOnce+r.Calls == 0 {
				calls, err := systemCalls(measured)
				err = errors.Join(err, ready(r, name))
				if err != nil {
					return result, err
				}
				result.Calls[name] = calls
			}
			c, err := call(r.shell(measured)...)
			if r.Cold && name != "direct" && c[Major] == 0 {
				err = errors.Join(err, errors.New("the cache is not cold: is the layer on a disk?"))
			}
			if err != nil {
				return result, err
			}
			result.Samples[name] = append(result.Samples[name], c)
		}
	}
	return result, nil
}

// ready prepares the next call of a program.
func ready(r Row, name string) error {
	program := "/usr/sbin/" + name
	if dir := dirs[name]; dir != "" {
		if err := prepare(r, dir); err != nil {
			return err
		}
		program = dir + "/iptables-wrapper"
	}
	if r.Cold && name != "direct" {
		return evict(program)
	}
	return nil
}

// shell makes a shell call a command as often as the row says.
func (r Row) shell(command []string) []string {
	const atOnce = `
		n=$1; shift
		while [ $n -gt 0 ]; do "$@" & pids="$pids $!"; n=$((n - 1)); done
		for pid in $pids; do wait $pid || exit; done`
	const inTurn = `
		n=$1; shift
		while [ $n -gt 0 ]; do "$@" || exit; n=$((n - 1)); done`
	switch {
	case r.AtOnce > 0:
		return append([]string{"/bin/sh", "-c", atOnce, "sh", fmt.Sprint(r.AtOnce)}, command...)
	case r.Calls > 0:
		return append([]string{"/bin/sh", "-c", inTurn, "sh", fmt.Sprint(r.Calls)}, command...)
	}
	return command
}

// call starts a program and waits for its end: with two system calls, because what os/exec does besides would run at
// the same time. All three descriptors are null.
func call(command ...string) (c Cost, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return c, err
	}
	defer null.Close()
	attributes := &syscall.ProcAttr{Env: []string{"PATH=/usr/sbin"}, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}}
	begin := time.Now()
	pid, err := syscall.ForkExec(command[0], command, attributes)
	if err != nil {
		return c, fmt.Errorf("start %q: %w", command, err)
	}
	var status syscall.WaitStatus
	var usage syscall.Rusage
	for err = syscall.EINTR; err == syscall.EINTR; {
		_, err = syscall.Wait4(pid, &status, 0, &usage)
	}
	wall := time.Since(begin)
	if err != nil || status != 0 {
		return c, fmt.Errorf("%q: status %#x, %v", command, status, err)
	}
	return Cost{
		wall.Seconds() * 1e3,
		float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6,
		float64(usage.Majflt),
		float64(usage.Minflt),
		float64(usage.Maxrss) / 1024,
	}, nil
}

// systemCalls returns how many a command makes, on all threads, until it becomes another program.
func systemCalls(command []string) (n int, err error) {
	strace := append([]string{"-f", "-qq", "-o", "/dev/stderr"}, command...)
	out, err := exec.Command("strace", strace...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("strace %q: %w\n%s", command, err, out)
	}
	for line := range strings.Lines(string(out)) {
		switch {
		case strings.Contains(line, "execve(") && n > 0:
			return n, nil
		case strings.Contains(line, "(") && !strings.Contains(line, "resumed>"):
			n++
		}
	}
	return n, errors.New("it does not become another program")
}
