// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package start starts iptables to hear what it says, for doctor and install. No wrapped call does so.
package start

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
)

// Limit is long enough for a program that lists the rules of the largest clusters.
const Limit = 10 * time.Second

// ErrRefused means that a program was not started, because other users could replace it.
var ErrRefused = errors.New("not started")

// Starter starts programs.
type Starter struct {
	Limit   time.Duration // how long each may run
	Refused []string      // why programs were not started

	hangs error // a program did not end, so no other one is started
}

// Output is what a program printed.
type Output struct {
	Command string // as a person would type it
	Stdout  string
	Stderr  string
	Err     error
}

// Text is all that it printed, standard error first.
func (o Output) Text() string { return strings.TrimSpace(o.Stderr + o.Stdout) }

// Run starts a program as a command, with the wrapper's variable set to a backend, so that a wrapper neither asks nor
// stores anything. After the time limit it is killed, with all processes that it started.
func (s *Starter) Run(program string, backend detect.Backend, argv ...string) Output {
	o := Output{Command: strings.Join(argv, " "), Err: s.hangs}
	if o.Err != nil {
		return o
	}
	why := Replaceable(program)
	if why != "" {
		o.Err = ErrRefused
		if !slices.Contains(s.Refused, why) {
			s.Refused = append(s.Refused, why)
		}
		return o
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = argv
	cmd.Env = append(os.Environ(), call.Variable+"="+string(backend))
	cmd.Stdin = strings.NewReader("") // otherwise /dev/null, which a chroot may lack
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second // a process of a group of its own may still hold the pipe
	o.Err = cmd.Run()
	o.Stdout = stdout.String()
	o.Stderr = stderr.String()
	if ctx.Err() != nil {
		s.hangs = fmt.Errorf("it did not end within %v", s.Limit)
		o.Err = s.hangs
	}
	return o
}
