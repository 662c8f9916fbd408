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

// The fields of Cost: times in milliseconds, page faults that read from a disk and that did not, and the largest resident
// set of a process in MiB, at least that of this one.
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
	Saves   []Cost
}

// Measure makes the host and measures.
func Measure(r Row, layer string) (Result, error) {
	result := Result{Row: r, Samples: map[string][]Cost{}, Calls: map[string]int{}}
	if err := makeHost(r, layer); err != nil {
		return result, err
	}
	direct := append([]string{"/usr/sbin/xtables-" + r.Mode + "-multi"}, r.command()...)
	commands := map[string][]string{"direct": direct, "floor": append([]string{"/usr/sbin/floor"}, direct...)}
	for name, dir := range dirs {
		if _, err := os.Stat(dir + "/iptables-wrapper"); err != nil {
			continue // no revision to compare with
		}
		commands[name] = append([]string{dir + "/iptables"}, r.command()[1:]...)
		if err := check(r, dir); r.MiB > 0 && err != nil {
			delete(commands, name) // it needs more; the page says that it fails
		} else if err != nil {
			return result, err
		}
	}
	for begin, round := time.Now(), 0; round < r.Rounds && (round < 5 || time.Since(begin) < r.AtMost); round++ {
		for _, name := range []string{"direct", "floor", "wrapped", "before"} {
			command := commands[name]
			if command == nil {
				continue
			}
			if err := ready(r, name); err != nil {
				return result, err
			}
			if round == 0 && name != "direct" && r.AtOnce+r.Calls == 0 {
				calls, err := systemCalls(command)
				if err = errors.Join(err, ready(r, name)); err != nil {
					return result, err
				}
				result.Calls[name] = calls
			}
			if r.Calls > 0 {
				command = append([]string{"/bin/sh", "-c", `n=$1; shift; while [ $n -gt 0 ]; do "$@" || exit; n=$((n - 1)); done`, "sh", fmt.Sprint(r.Calls)}, command...)
			}
			c, err := call(max(r.AtOnce, 1), command...)
			if r.Cold && name != "direct" && c[Major] == 0 {
				err = errors.Join(err, errors.New("the cache is not cold: is the layer on a disk?"))
			}
			if err != nil {
				return result, err
			}
			result.Samples[name] = append(result.Samples[name], c)
		}
	}
	for begin := time.Now(); r.Saves && len(result.Saves) < 5 && (len(result.Saves) == 0 || time.Since(begin) < r.AtMost); {
		var sum Cost
		for _, name := range []string{"iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save"} {
			c, err := call(1, "/usr/sbin/"+name)
			if err != nil {
				return result, err
			}
			sum.add(c)
			sum[Wall] += c[Wall]
		}
		result.Saves = append(result.Saves, sum)
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

// call starts a program so many times at once, and waits for the end of all: with two system calls for each, because what
// os/exec does besides would run at the same time. All three descriptors are null.
func call(times int, command ...string) (sum Cost, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return sum, err
	}
	defer null.Close()
	attributes := &syscall.ProcAttr{Env: []string{"PATH=/usr/sbin"}, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}}
	pids := make([]int, times)
	begin := time.Now()
	for i := range pids {
		if pids[i], err = syscall.ForkExec(command[0], command, attributes); err != nil {
			return sum, fmt.Errorf("start %q: %w", command, err)
		}
	}
	for _, pid := range pids {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		for err = syscall.EINTR; err == syscall.EINTR; {
			_, err = syscall.Wait4(pid, &status, 0, &usage)
		}
		if err != nil || status != 0 {
			return sum, fmt.Errorf("%q: status %#x, %v", command, status, err)
		}
		sum.add(Cost{CPU: float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6, Major: float64(usage.Majflt),
			Minor: float64(usage.Minflt), RSS: float64(usage.Maxrss) / 1024})
	}
	sum[Wall] = float64(time.Since(begin).Microseconds()) / 1e3
	return sum, nil
}

// add adds what another process took. How long both took together is for the caller to say.
func (c *Cost) add(d Cost) {
	c[CPU], c[Major], c[Minor], c[RSS] = c[CPU]+d[CPU], c[Major]+d[Major], c[Minor]+d[Minor], max(c[RSS], d[RSS])
}

// systemCalls returns how many a command makes, on all threads, until it becomes another program.
func systemCalls(command []string) (n int, err error) {
	out, err := exec.Command("strace", append([]string{"-f", "-qq", "-o", "/dev/stderr"}, command...)...).CombinedOutput()
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
