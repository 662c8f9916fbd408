// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// limit is how long a program may run, and most how much it may print: the rules of the largest clusters are 20 MB.
const (
	limit = 10 * time.Second
	most  = 64 << 20
)

var (
	errRefused = errors.New("not started")
	errHangs   = fmt.Errorf("it did not end within %v", limit)
)

// starter starts programs, and remembers what it refused to start and why.
type starter struct {
	refused []string
	hangs   bool // a program did not end, so no other one is started
}

// output is what a program printed.
type output struct {
	command string // as a person would type it
	stdout  string
	stderr  string
	status  int // -1 if it did not end by itself
	err     error
}

// text is all that it printed, standard error first.
func (o output) text() string { return strings.TrimSpace(o.stderr + o.stdout) }

// run starts a program as a command, with IPTABLES_WRAPPER_MODE set to a backend, so that a wrapper neither asks nor
// stores anything. After a time limit it is killed, with all processes that it started.
//
// It does not start a file that users other than root and the caller could replace: doctor may run as root.
func (s *starter) run(program string, mode evidence.Mode, argv ...string) output {
	o := output{command: strings.Join(argv, " "), status: -1}
	if why := replaceable(program); why != "" {
		s.refuse(why)
		o.err = errRefused
		return o
	}
	if s.hangs {
		o.err = errHangs
		return o
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var stdout, stderr limited
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = argv
	cmd.Env = append(os.Environ(), "IPTABLES_WRAPPER_MODE="+string(mode))
	cmd.Stdin = strings.NewReader("")
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second // a process of its own group may still hold the pipe
	o.err = cmd.Run()
	o.stdout = stdout.String()
	o.stderr = stderr.String()
	if cmd.ProcessState != nil {
		o.status = cmd.ProcessState.ExitCode()
	}
	if ctx.Err() != nil {
		s.hangs = true
		o.err = errHangs
	}
	return o
}

// refuse remembers why a program was not started.
func (s *starter) refuse(why string) {
	for _, known := range s.refused {
		if known == why {
			return
		}
	}
	s.refused = append(s.refused, why)
}

// limited keeps what is written to it, up to a bound. What is beyond is an error, which closes the pipe.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > most {
		return 0, fmt.Errorf("more than %d MiB", most>>20)
	}
	return l.Buffer.Write(b)
}

// replaceable says who could replace the program that a path leads to: a user other than root and the caller who owns
// it, a link or a directory on the way, or could write there. It is "" if nobody can, and if there is no program.
func replaceable(path string) string {
	for hop := range layout.Hops(path) {
		for _, file := range []string{filepath.Dir(hop), hop} {
			var st unix.Stat_t
			if err := unix.Lstat(file, &st); err != nil {
				continue
			}
			isLink := st.Mode&unix.S_IFMT == unix.S_IFLNK
			switch {
			case st.Uid != 0 && int(st.Uid) != os.Geteuid():
				return fmt.Sprintf("%q was not started: %q belongs to user %d", path, file, st.Uid)
			case isLink: // its permissions do not count
			case st.Mode&0o002 != 0 || st.Mode&0o020 != 0 && st.Gid != 0:
				return fmt.Sprintf("%q was not started: users other than root can write %q", path, file)
			}
		}
	}
	return ""
}
