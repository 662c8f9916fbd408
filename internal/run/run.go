// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package run runs programs and captures their output: iptables for doctor, the tool of alternatives for install. It
// starts none that other users could replace, and none outlives its time, or this process.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
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
	// ErrEndless means that a program did not end within the limit.
	ErrEndless = errors.New("did not end in time")
	// ErrNotStarted means that a program was not started: others could replace it, one before it did not end, so that
	// it would take as long, or this process lacked what another one needs.
	ErrNotStarted = errors.New("not started")
)

// Starter starts programs, one after the other.
type Starter struct {
	Limit   time.Duration // how long each may run
	Env     []string      // nil: that of this process
	Keep    string        // lines of standard output that begin so are kept, however late they come
	Exposed []string      // what others can write on the way to a program that was therefore not started
	Scarce  error         // that a program could not be started, for want of processes, memory, descriptors or pipes
	Endless bool          // a program did not end: then no other one is started
}

// Output is what a program printed.
type Output struct {
	Command string   // as a person would type it
	Stdout  string   // its beginning
	Kept    []string // lines of standard output
	Stderr  string   // its beginning
	Err     error    // ErrNotStarted, ErrEndless, of the kernel, or *exec.ExitError
	Used    time.Duration
}

// Text returns all that it printed, standard error first.
func (o Output) Text() string { return strings.TrimSpace(o.Stderr + o.Stdout) }

// Check returns an error that wraps ErrNotStarted and file.ErrExposed, and notes why, if other users could replace a
// program.
func (s *Starter) Check(program string) error {
	exposed := file.Exposed(program)
	if exposed == "" {
		return nil
	}
	if !slices.Contains(s.Exposed, exposed) {
		s.Exposed = append(s.Exposed, exposed)
	}
	return fmt.Errorf("%w: %q: %w", ErrNotStarted, exposed, file.ErrExposed)
}

// Run starts a program as a command. It sets the wrapper's variable to a backend, so that a wrapper neither asks nor
// keeps anything. After the time limit it kills the program, and all processes in its group. So it does if this process
// is told to end, which then ends.
func (s *Starter) Run(program string, backend detect.Backend, argv ...string) Output {
	o := Output{Command: strings.Join(argv, " ")}
	if s.Endless {
		o.Err = fmt.Errorf("%w: another program did not end", ErrNotStarted)
		return o
	}
	o.Err = s.Check(program)
	if o.Err != nil {
		return o
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Limit)
	defer cancel()
	stdout, stderr := kept{prefix: s.Keep}, kept{}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = argv
	cmd.Env = s.Env
	cmd.Env = append(cmd.Environ(), plan.Variable+"="+string(backend))
	cmd.Stdin = strings.NewReader("") // otherwise os/exec opens /dev/null, which a chroot may lack
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second // a process that it has left behind may still have the pipe open
	told := endOnSignal(cancel)
	o.Err = cmd.Run()
	told()
	if errors.Is(o.Err, exec.ErrWaitDelay) {
		o.Err = nil
	}
	o.Stdout, o.Kept, o.Stderr = string(stdout.first), stdout.lines, string(stderr.first)
	var own *os.SyscallError // no pipe: not even tried
	isOwn := errors.As(o.Err, &own) || plan.IsScarce(o.Err) || errors.Is(o.Err, unix.EAGAIN)
	switch {
	case ctx.Err() != nil:
		s.Endless = true
		o.Err = ErrEndless
		if cmd.ProcessState != nil { // it was started
			o.Used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
	case cmd.ProcessState == nil && isOwn:
		s.Scarce = o.Err
		o.Err = fmt.Errorf("%w: %w", ErrNotStarted, o.Err)
	}
	return o
}

// endOnSignal calls end if this process is told to end. Then the function that it returns ends this process, as the
// signal would have done.
func endOnSignal(end func()) (finish func()) {
	caught := make(chan os.Signal, 1)
	told := make(chan os.Signal, 1)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		if !signal.Ignored(s) { // nohup
			signal.Notify(caught, s)
		}
	}
	go func() {
		s, isSignal := <-caught
		if isSignal {
			told <- s
			end()
		}
		close(told)
	}()
	return func() {
		signal.Stop(caught)
		close(caught)
		s, isSignal := <-told
		if !isSignal {
			return
		}
		_ = unix.Kill(unix.Getpid(), s.(unix.Signal)) // to oneself, it cannot fail
		time.Sleep(time.Second)                       // another thread may get it
		const status = 128                            // process 1 ignores it
		os.Exit(status + int(s.(unix.Signal)))
	}
}

// InPath returns the absolute path of a command as a shell finds it, with an error that of /usr/sbin. PATH may have
// directories that are not absolute.
func InPath(command string) (string, error) {
	path, err := exec.LookPath(command)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "/usr/sbin/" + command, err
	}
	return filepath.Abs(path)
}
