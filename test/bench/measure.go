// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// runs is how often each call is made. Four saves of many rules take seconds, so they are made less often.
const (
	runs     = 201
	saveRuns = 5
)

// sample is what a call cost: medians, and the middle half of the wall times. Times are in milliseconds.
type sample struct {
	Wall, Low, High float64
	CPU             float64 // user and system
}

// cost is one call.
type cost struct{ wall, cpu time.Duration }

func summary(costs []cost) sample {
	var walls, cpus []float64
	var s sample
	for _, c := range costs {
		walls = append(walls, c.wall.Seconds()*1e3)
		cpus = append(cpus, c.cpu.Seconds()*1e3)
	}
	slices.Sort(walls)
	slices.Sort(cpus)
	n := len(walls)
	s.Wall, s.Low, s.High, s.CPU = walls[n/2], walls[n/4], walls[n-1-n/4], cpus[n/2]
	return s
}

// call starts a program, argv[0] being the name it is called by, and waits for its end.
func call(path string, argv ...string) (cost, error) {
	cmd := &exec.Cmd{Path: path, Args: argv, Env: []string{"PATH=/usr/sbin"}}
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w", cmd, err)
	}
	return cost{wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// memory returns the largest resident set of a command, in KiB. A process counts what its parent had when it was started,
// so it is never less than this process has.
func memory(args ...string) (int64, error) {
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w", cmd, err)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, nil
}

var names = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}

// reset points the six names at the wrapper.
func reset() error {
	for _, name := range names {
		path := filepath.Join("/usr/sbin", name)
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Symlink("iptables-wrapper", path); err != nil {
			return err
		}
	}
	return nil
}

// measure makes the host and measures, in turns: direct, wrapped, floor, direct, wrapped, floor.
func measure(s state, wrapper, floor, noCLI string) (measurement, error) {
	m := measurement{State: s}
	if err := makeHost(s); err != nil {
		return m, err
	}
	if err := run("cp", wrapper, "/usr/sbin/iptables-wrapper"); err != nil {
		return m, err
	}
	if err := run("cp", floor, "/usr/sbin/floor"); err != nil {
		return m, err
	}
	if err := run("sh", "-ec", `mkdir /usr/sbin/no-cli; cp "$1" /usr/sbin/no-cli/iptables
		ln -s ../xtables-nft-multi ../xtables-legacy-multi /usr/sbin/no-cli`, "sh", noCLI); err != nil {
		return m, err
	}
	program := "/usr/sbin/xtables-" + s.Mode + "-multi"
	direct := func() (cost, error) { return call(program, "iptables", "--version") }
	wrapped := func() (cost, error) { return call("/usr/sbin/iptables", "iptables", "--version") }
	smaller := func() (cost, error) { return call("/usr/sbin/no-cli/iptables", "iptables", "--version") }
	bare := func() (cost, error) { return call("/usr/sbin/floor", "floor", program, "iptables", "--version") }

	var directs, firsts, readOnlys, noCLIs, floors, saves []cost
	take := func(to *[]cost, f func() (cost, error)) error {
		c, err := f()
		*to = append(*to, c)
		return err
	}
	err := reset()
	if err != nil {
		return m, err
	}
	if m.Memory, err = memory("/usr/sbin/iptables", "--version"); err != nil {
		return m, err
	}
	if m.DirectMemory, err = memory(program, "iptables", "--version"); err != nil {
		return m, err
	}
	if m.SaveMemory, err = memory("/usr/sbin/iptables-" + s.Mode + "-save"); err != nil {
		return m, err
	}
	// Links moved.
	for range runs {
		if err := reset(); err != nil {
			return m, err
		}
		for _, step := range []struct {
			to *[]cost
			f  func() (cost, error)
		}{{&directs, direct}, {&firsts, wrapped}, {&floors, bare}} {
			if err := take(step.to, step.f); err != nil {
				return m, err
			}
		}
		if s.Hint || s.Rules > 0 {
			if target, err := os.Readlink("/usr/sbin/iptables"); err != nil || target != filepath.Base(program) {
				return m, fmt.Errorf("the first call did not move the links: %q, %v", target, err)
			}
		}
	}
	// Read-only.
	if err := reset(); err != nil {
		return m, err
	}
	if err := count(&m, program); err != nil {
		return m, err
	}
	if err := reset(); err != nil {
		return m, err
	}
	if err := run("mount", "-o", "remount,ro", "/usr/sbin"); err != nil {
		return m, err
	}
	for range runs {
		for _, step := range []struct {
			to *[]cost
			f  func() (cost, error)
		}{{&directs, direct}, {&readOnlys, wrapped}, {&noCLIs, smaller}, {&floors, bare}} {
			if err := take(step.to, step.f); err != nil {
				return m, err
			}
		}
	}
	for range saveRuns {
		var sum cost
		for _, name := range []string{"iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save"} {
			c, err := call("/usr/sbin/"+name, name)
			if err != nil {
				return m, err
			}
			sum = cost{sum.wall + c.wall, sum.cpu + c.cpu}
		}
		saves = append(saves, sum)
	}
	m.Direct, m.Floor, m.FourSaves = summary(directs), summary(floors), summary(saves)
	m.First, m.ReadOnly, m.NoCLI = summary(firsts), summary(readOnlys), summary(noCLIs)
	return m, nil
}

// makeHost loads rules as kube-proxy writes them.
func makeHost(s state) error {
	if s.Hint {
		if err := run("iptables-"+s.Mode, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"); err != nil {
			return err
		}
	}
	if s.Rules == 0 {
		return nil
	}
	// Not by this process: what it holds in memory counts for those that it starts.
	return run("bash", "-o", "pipefail", "-ec", `awk -v n="$1" 'BEGIN {
		print "*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES"
		for (i = 0; i < n - 1; i++)
			printf "-A KUBE-SERVICES -d 10.%d.%d.%d/32 -p tcp -m comment --comment \"ns/svc-%d cluster IP\" -m tcp --dport 80 -j RETURN\n",
				i / 65536, i / 256 % 256, i % 256, i
		print "COMMIT"
	}' | "$2"`, "bash", fmt.Sprint(s.Rules), "iptables-"+s.Mode+"-restore")
}

// count counts what a first call does until it is the program, with strace.
func count(m *measurement, program string) error {
	calls, err := strace("/usr/sbin/iptables", "--version")
	if err != nil {
		return err
	}
	execs := 0
	for _, call := range calls {
		if strings.HasPrefix(call, "execve(") {
			if execs++; execs == 2 {
				break
			}
		}
		m.Calls++
		switch name, _, _ := strings.Cut(call, "("); name {
		case "sendto", "getsockopt":
			m.Questions++
		case "fork", "vfork", "clone", "clone3":
			if !strings.Contains(call, "CLONE_THREAD") {
				m.Processes++
			}
		}
	}
	if calls, err = strace("/usr/sbin/floor", program, "iptables", "--version"); err != nil {
		return err
	}
	for execs = 0; execs < 2 && m.FloorCalls < len(calls); m.FloorCalls++ {
		if strings.HasPrefix(calls[m.FloorCalls], "execve(") {
			execs++
		}
	}
	m.FloorCalls--
	if m.State.Rules > 1000 {
		return nil // tracing them takes minutes, and says nothing new
	}
	for _, name := range []string{"iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save"} {
		calls, err := strace("/usr/sbin/" + name)
		if err != nil {
			return err
		}
		m.SaveCalls += len(calls)
		m.SaveProcesses++
	}
	return nil
}

// strace returns the system calls of a command, of all its threads.
func strace(args ...string) ([]string, error) {
	out, err := exec.Command("strace", append([]string{"-f", "-qq", "-o", "/dev/stderr"}, args...)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("strace %v: %w\n%s", args, err, out)
	}
	var calls []string
	for line := range strings.Lines(string(out)) {
		fields := strings.SplitN(line, " ", 2)
		if len(fields) == 2 && strings.Contains(line, "(") && !strings.Contains(line, "resumed>") && !strings.Contains(line, "--- ") {
			calls = append(calls, strings.TrimSpace(fields[1]))
		}
	}
	return calls, nil
}
