// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step is a system call that the wrapper's code makes on the first thread.
type step struct {
	Name string
	On   string // what it is about; NAME is one of the six names
	When int    // which call of that name it is, as strace counts them
	// BeforeMain: Go's runtime makes it before main.
	BeforeMain bool

	result string
}

func (s step) same(other step) bool { return s.Name == other.Name && s.On == other.On }

// cannotFail are calls that have no errors of their own, or that only print.
var cannotFail = strings.Fields("geteuid getuid getegid getgid rt_sigaction sigaltstack close exit_group uname getrandom sched_getaffinity arch_prctl write fcntl")

// ofTheRuntime are calls that Go's runtime makes when it needs them. How often it does differs from run to run.
var ofTheRuntime = strings.Fields("futex mmap madvise munmap clone clone3 nanosleep sched_yield rt_sigreturn rt_sigprocmask tgkill getpid gettid prctl epoll_create1 epoll_pwait epoll_ctl eventfd2")

// parseTrace returns the steps until the program begins, or the end.
func parseTrace(trace string) (steps []step) {
	count := map[string]int{"execve": -1} // strace does not count the one that it makes itself
	inMain := false
	for line := range strings.Lines(trace) {
		name, args, isCall := strings.Cut(line, "(")
		if !isCall || strings.ContainsAny(name, "-+ ") {
			continue
		}
		count[name]++
		s := step{Name: name, On: about(name, args), When: count[name]}
		inMain = inMain || s.On == "/proc/self/exe" // the first thing that main looks at
		s.BeforeMain = !inMain
		if at := strings.LastIndex(args, " = "); at >= 0 {
			s.result = strings.TrimSpace(args[at+len(" = "):])
		}
		if name == "execve" && count[name] == 0 || slices.Contains(ofTheRuntime, name) {
			continue
		}
		steps = append(steps, s)
		if name == "execve" && s.result == "0" {
			break
		}
	}
	return steps
}

var (
	quoted     = regexp.MustCompile(`"([^"]*)"`)
	oneName    = regexp.MustCompile(`\bip6?tables(-save|-restore)?(\.|$)`)
	memoryName = regexp.MustCompile(`(/\.?iptables-wrapper)\.[0-9a-f.]+$`)
)

// about says what a call is about, from its arguments as strace writes them.
func about(name, args string) string {
	fields := strings.Split(args, ", ")
	switch name {
	case "socket":
		return strings.TrimSuffix(strings.TrimSpace(fields[0]), ")")
	case "getsockopt":
		return strings.Join(fields[1:min(3, len(fields))], " ")
	case "sendto", "recvfrom", "sendmsg", "recvmsg", "setsockopt", "flock", "close", "rt_sigaction", "read", "write", "pread64":
		return ""
	}
	paths := quoted.FindAllStringSubmatch(args, -1)
	if len(paths) == 0 {
		return ""
	}
	on := paths[len(paths)-1][1]
	if name == "execve" || name == "readlinkat" {
		on = paths[0][1]
	}
	return oneName.ReplaceAllString(memoryName.ReplaceAllString(on, "$1.MEMORY"), "NAME$2")
}

// ended is how a traced command ended.
type ended struct {
	status         int
	stdout, stderr string
	killed         bool
	program        string // what it executed, by its base name
}

// traced runs a command under strace and returns what its first thread did and how it ended.
func traced(t *testing.T, call []string, inject ...string) ([]step, ended) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", append(append([]string{"-qq", "-s", "200", "-o", file}, inject...), call...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	trace, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%s: %v, %s", cmd, err, stderr.String())
	}
	steps := parseTrace(string(trace))
	e := ended{status: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(),
		killed: bytes.Contains(trace, []byte("+++ killed by SIGKILL"))}
	if n := len(steps); n > 0 && steps[n-1].Name == "execve" && steps[n-1].result == "0" {
		e.program = filepath.Base(steps[n-1].On)
	}
	return steps, e
}

// reference returns the steps of an undisturbed run. Two runs must agree.
func (s *scene) reference(t *testing.T) []step {
	t.Helper()
	var last []step
	for range 10 {
		s.restore(t)
		steps, end := traced(t, s.call)
		if end.status != 0 || !s.isCommand() && end.program == "" {
			t.Fatalf("%s: %v: %+v", s.doc, s.call, end)
		}
		if slices.EqualFunc(steps, last, step.same) {
			return steps
		}
		last = steps
	}
	t.Fatalf("%s: no two runs make the same calls: %+v", s.doc, last)
	return nil
}

// disturb runs the scene's call once with an injection into one step, such as "error=EIO". The step is found by counting,
// and the runtime may make calls in between. So a run counts only if it made the steps of the reference up to that one,
// and that one was disturbed; otherwise there is another.
func (s *scene) disturb(t *testing.T, reference []step, at int, injection string) ended {
	t.Helper()
	want := reference[at]
	var steps []step
	for range 10 {
		s.restore(t)
		var end ended
		steps, end = traced(t, s.call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", want.Name, injection, want.When))
		if len(steps) > at && slices.EqualFunc(steps[:at+1], reference[:at+1], step.same) &&
			(strings.Contains(steps[at].result, "(INJECTED)") || end.killed && len(steps) == at+1) {
			return end
		}
	}
	t.Fatalf("%s: %s could not be injected into %+v: the calls before it are others each time:\n%+v\n%+v",
		s.doc, injection, want, reference[:at+1], steps)
	return ended{}
}
