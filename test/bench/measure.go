// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// saveRuns is how often four saves are made. With many rules they take seconds.
const saveRuns = 5

// sample is what a call cost: medians, and the middle half of the wall times. Times are in milliseconds.
type sample struct {
	Wall, Low, High float64
	CPU             float64 // user and system
	Faults          float64 // of pages, none of which was read from a disk
}

// cost is one call.
type cost struct {
	wall, cpu time.Duration
	faults    int64
}

func (c cost) plus(d cost) cost { return cost{c.wall + d.wall, c.cpu + d.cpu, c.faults + d.faults} }

func summary(costs []cost) sample {
	each := func(value func(cost) float64) []float64 {
		var values []float64
		for _, c := range costs {
			values = append(values, value(c))
		}
		slices.Sort(values)
		return values
	}
	n := len(costs)
	if n == 0 {
		return sample{}
	}
	walls := each(func(c cost) float64 { return c.wall.Seconds() * 1e3 })
	return sample{
		Wall: walls[n/2], Low: walls[n/4], High: walls[n-1-n/4],
		CPU:    each(func(c cost) float64 { return c.cpu.Seconds() * 1e3 })[n/2],
		Faults: each(func(c cost) float64 { return float64(c.faults) })[n/2],
	}
}

// call starts a program, argv[0] being the name it is called by, and waits for its end: by two system calls, because what
// os/exec does besides would run at the same time. All three of its descriptors are null.
func call(null *os.File, path string, argv ...string) (cost, error) {
	fd := null.Fd()
	start := time.Now()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: []string{"PATH=/usr/sbin"}, Files: []uintptr{fd, fd, fd},
	})
	if err != nil {
		return cost{}, &os.PathError{Op: "start", Path: path, Err: err}
	}
	var status syscall.WaitStatus
	var usage syscall.Rusage
	for {
		if _, err = syscall.Wait4(pid, &status, 0, &usage); err != syscall.EINTR {
			break
		}
	}
	wall := time.Since(start)
	if err != nil || status != 0 {
		return cost{}, fmt.Errorf("%s as %v: status %#x, %v", path, argv, status, err)
	}
	return cost{wall, time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), usage.Minflt}, nil
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

// reset makes the layout of install: six names, the switch, the wrapper. There is no memory afterwards.
func reset() error {
	for _, name := range names {
		if err := relink("iptables-current", filepath.Join("/usr/sbin", name)); err != nil {
			return err
		}
	}
	if err := relink("iptables-wrapper", "/usr/sbin/iptables-current"); err != nil {
		return err
	}
	return forget()
}

func relink(target, path string) error {
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(target, path)
}

// forget removes the memory.
func forget() error {
	memories, err := filepath.Glob("/dev/shm/iptables-wrapper.*")
	for _, memory := range memories {
		err = errors.Join(err, os.Remove(memory))
	}
	return err
}

// measure makes the host and measures, in turns: direct, wrapped, floor, direct, wrapped, floor.
func measure(s state, layer string, runs int) (m measurement, err error) {
	m.State = s
	if err := makeHost(s); err != nil {
		return m, err
	}
	if err := place(layer); err != nil {
		return m, err
	}
	if err := reset(); err != nil {
		return m, err
	}
	program := "/usr/sbin/xtables-" + s.Mode + "-multi"
	if err := m.takeMemory(program); err != nil { // first, while this process is small
		return m, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return m, err
	}
	defer null.Close()
	as := func(path string) func() (cost, error) {
		return func() (cost, error) { return call(null, path, "iptables", "--version") }
	}
	var directs, firsts, readOnlys, remembereds, addings, directAddings, noCLIs, befores, floors, saves []cost
	type step struct {
		to *[]cost
		f  func() (cost, error)
	}
	direct := step{&directs, as(program)}
	floor := step{&floors, func() (cost, error) { return call(null, "/usr/sbin/floor", "floor", program, "iptables", "--version") }}
	takeAll := func(steps ...step) error {
		for _, step := range steps {
			c, err := step.f()
			if err != nil {
				return err
			}
			*step.to = append(*step.to, c)
		}
		return nil
	}

	// Links repointed.
	for range runs {
		if err := reset(); err != nil {
			return m, err
		}
		if err := takeAll(direct, step{&firsts, as("/usr/sbin/iptables")}, floor); err != nil {
			return m, err
		}
		if s.Hint || s.Rules > 0 {
			if target, err := os.Readlink("/usr/sbin/iptables-current"); err != nil || target != filepath.Base(program) {
				return m, fmt.Errorf("the first call did not move the switch: %q, %v", target, err)
			}
		}
	}
	if err := count(&m, program); err != nil {
		return m, err
	}
	// Read-only.
	if err := reset(); err != nil {
		return m, err
	}
	if err := run("mount", "-o", "remount,ro", "/usr/sbin"); err != nil {
		return m, err
	}
	// What a call remembers would help the next.
	afresh := func(to *[]cost, path string, argv ...string) step {
		return step{to, func() (cost, error) {
			if err := forget(); err != nil {
				return cost{}, err
			}
			return call(null, path, argv...)
		}}
	}
	version := []string{"iptables", "--version"}
	steps := []step{
		direct, afresh(&readOnlys, "/usr/sbin/iptables", version...), afresh(&noCLIs, "/usr/sbin/no-cli/iptables", version...), floor,
	}
	if _, err := os.Stat("/usr/sbin/before"); err == nil {
		steps = append(steps, afresh(&befores, "/usr/sbin/before/iptables", version...))
	}
	if adding := []string{"iptables", "-w", "-P", "INPUT", "ACCEPT"}; s == (state{Mode: "nft"}) {
		steps = append(steps, afresh(&directAddings, program, adding...), afresh(&addings, "/usr/sbin/iptables", adding...))
	}
	for range runs {
		if err := takeAll(steps...); err != nil {
			return m, err
		}
	}
	// A conclusive answer makes a memory; where there is none, a call that can add something does.
	if _, err := call(null, "/usr/sbin/iptables", "iptables", "-w", "-P", "INPUT", "ACCEPT"); err != nil {
		return m, err
	}
	if memories, _ := filepath.Glob("/dev/shm/iptables-wrapper.*"); len(memories) != 1 {
		return m, fmt.Errorf("there is no memory: %q", memories)
	}
	for range runs {
		if err := takeAll(direct, step{&remembereds, as("/usr/sbin/iptables")}, floor); err != nil {
			return m, err
		}
	}
	for range min(runs, saveRuns) {
		var sum cost
		for _, name := range saveNames {
			c, err := call(null, "/usr/sbin/"+name, name)
			if err != nil {
				return m, err
			}
			sum = sum.plus(c)
		}
		saves = append(saves, sum)
	}
	m.Direct, m.Floor, m.FourSaves = summary(directs), summary(floors), summary(saves)
	m.First, m.ReadOnly, m.NoCLI, m.Before = summary(firsts), summary(readOnlys), summary(noCLIs), summary(befores)
	m.Remembered, m.Adding, m.DirectAdding = summary(remembereds), summary(addings), summary(directAddings)
	m.Inits, err = traceInits(program, runs)
	return m, err
}

// place lays a layer with the programs over /usr/sbin, and a writable one over that, as a container has them.
func place(layer string) error {
	return run("sh", "-ec", `
		mkdir /run/upper /run/work
		mount -t overlay -o "lowerdir=$1:/usr/sbin,upperdir=/run/upper,workdir=/run/work" overlay /usr/sbin`, "sh", layer)
}

var saveNames = []string{"iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save"}

func (m *measurement) takeMemory(program string) (err error) {
	for to, args := range map[*int64][]string{
		&m.Memory: {"/usr/sbin/iptables", "--version"}, &m.DirectMemory: {program, "iptables", "--version"},
		&m.SaveMemory: {"/usr/sbin/iptables-" + m.State.Mode + "-save"},
	} {
		if *to, err = memory(args...); err != nil {
			return err
		}
	}
	return nil
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
	if err := reset(); err != nil {
		return err
	}
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
	for _, name := range saveNames {
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
