// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package run runs programs and captures their output: iptables for doctor, the tool of alternatives for install.
package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
)

// Limit is long enough for a program that lists the rules of the largest clusters.
const Limit = 10 * time.Second

var (
	// ErrRefused means that a program was not started because other users could replace it.
	ErrRefused = errors.New("not started")
	// ErrHangs means that a program did not end within the limit.
	ErrHangs = errors.New("did not end in time")
)

// Starter starts programs, one after the other.
type Starter struct {
	Limit   time.Duration // how long each may run
	Env     []string      // nil: that of this process
	Refused []Refusal     // programs that were not started
	Scarce  error         // that a program could not be started, for want of processes, memory or descriptors
	Hangs   string        // the program that did not end: then no other one is started
}

// Refusal is why a program was not started.
type Refusal struct {
	Path string // of the program, or of what leads to it
	Why  string // "belongs to user 1000"
}

// String returns both, with the path in quotes.
func (r Refusal) String() string { return fmt.Sprintf("%q %s", r.Path, r.Why) }

// mostOutput is about the most that is kept of what a program prints on one stream: messages, and the first rules.
const mostOutput = 1 << 20

// kept is what is kept of a stream. It has no method of bytes.Buffer: ReadFrom would keep all.
type kept struct{ buffer bytes.Buffer }

// Write keeps b if there is room, and always succeeds, so that the program does not fail.
func (k *kept) Write(b []byte) (int, error) {
	if k.buffer.Len() < mostOutput {
		k.buffer.Write(b)
	}
	return len(b), nil
}

// Output is what a program printed.
type Output struct {
	Command string // as a person would type it
	Stdout  string
	Stderr  string
	Err     error
}

// Text returns all that it printed, standard error first.
func (o Output) Text() string { return strings.TrimSpace(o.Stderr + o.Stdout) }

// Run starts a program as a command. It sets the wrapper's variable to a backend, so that a wrapper neither asks nor
// keeps anything. After the time limit it kills the program, and all processes in its group.
func (s *Starter) Run(program string, backend detect.Backend, argv ...string) Output {
	o := Output{Command: strings.Join(argv, " ")}
	if s.Hangs != "" {
		o.Err = s.hang()
		return o
	}
	exposed := file.Exposed(program)
	if exposed != "" {
		refusal := Refusal{Path: exposed, Why: "can be written by others"}
		o.Err = ErrRefused
		if !slices.Contains(s.Refused, refusal) {
			s.Refused = append(s.Refused, refusal)
		}
		return o
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Limit)
	defer cancel()
	var stdout, stderr kept
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = argv
	cmd.Env = s.Env
	cmd.Env = append(cmd.Environ(), plan.Variable+"="+string(backend))
	cmd.Stdin = strings.NewReader("") // otherwise os/exec opens /dev/null, which a chroot may lack
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second // a process in another group may still have the pipe open
	o.Err = cmd.Run()
	if cmd.ProcessState == nil && (plan.IsScarce(o.Err) || errors.Is(o.Err, unix.EAGAIN)) {
		s.Scarce = o.Err
	}
	o.Stdout = stdout.buffer.String()
	o.Stderr = stderr.buffer.String()
	if ctx.Err() != nil {
		s.Hangs = program
		o.Err = s.hang()
	}
	return o
}

// hang is the error of the program that did not end, and of those that are not started after it.
func (s *Starter) hang() error { return fmt.Errorf("%q %w", s.Hangs, ErrHangs) }

// InPath returns the path of a command as a shell finds it in PATH, otherwise in /usr/sbin.
func InPath(command string) string {
	path, err := exec.LookPath(command)
	if err != nil || !filepath.IsAbs(path) {
		return "/usr/sbin/" + command
	}
	return path
}
