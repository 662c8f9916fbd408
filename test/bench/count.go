// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// memory returns the largest resident set of a command, in KiB. A process counts what its parent had when it was started,
// so it is never less than this process has.
func memory(args ...string) (int64, error) {
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w", cmd, err)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, nil
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
