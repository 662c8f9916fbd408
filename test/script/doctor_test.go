// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// cure runs the commands that doctor prints as the fix of a finding, to the letter. Doctor must have that finding,
// and its fix must have commands. Afterwards doctor must not have it any more.
func cure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cure code")
	}
	code := args[0]
	fix, found := fixOf(ts, code)
	if !found {
		ts.Fatalf("doctor does not find %s", code)
	}
	_, commands, _ := strings.Cut(fix, "\n")
	if commands == "" {
		ts.Fatalf("the fix of %s has no command: %s", code, fix)
	}
	for command := range strings.Lines(commands) {
		command = strings.TrimPrefix(strings.TrimSpace(command), "RUN ")
		ts.Logf("[cure] %s", command)
		ts.Check(ts.Exec("sh", "-ec", command))
	}
	if fix, found = fixOf(ts, code); found {
		ts.Fatalf("doctor still finds %s: %s", code, fix)
	}
}

// fixOf returns the fix that doctor prints for a finding.
func fixOf(ts *testscript.TestScript, code string) (fix string, found bool) {
	cmd := exec.Command("iptables-wrapper", "doctor", "-o", "json")
	cmd.Env = environment(ts)
	output, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("doctor: %v", err)
	}
	var report struct {
		Findings []struct{ Code, Fix string }
	}
	ts.Check(json.Unmarshal(output, &report))
	for _, f := range report.Findings {
		if f.Code == code {
			return f.Fix, true
		}
	}
	return "", false
}

// environment is what programs of a script get.
func environment(ts *testscript.TestScript) []string {
	all := append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	const passedOn = "IPTABLES_WRAPPER_MODE IPTABLES_WRAPPER_DEBUG XTABLES_LOCKFILE XTABLES_LIBDIR"
	for name := range strings.FieldsSeq(passedOn) {
		if value := ts.Getenv(name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// passes connects from one network namespace of ip-netns(8) to an address, behind which somebody listens in another
// one. "! passes" means that no packet gets through.
func passes(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: [!] passes from address to listening")
	}
	from, address, to, listening := args[0], args[1], args[2], args[3]
	var listener net.Listener
	err := inside(to, func() (err error) {
		listener, err = net.Listen("tcp", listening)
		return err
	})
	ts.Check(err)
	defer listener.Close()
	timeout := 5 * time.Second // much longer than it takes, also on a busy machine
	if neg {
		timeout = 500 * time.Millisecond // the first packet, which is lost
	}
	err = inside(from, func() error {
		connection, err := net.DialTimeout("tcp", address, timeout)
		if err == nil {
			connection.Close()
		}
		return err
	})
	switch {
	case neg && err == nil:
		ts.Fatalf("%s reaches %s", from, address)
	case !neg && err != nil:
		ts.Fatalf("%s does not reach %s: %v", from, address, err)
	}
}

// inside makes system calls in a network namespace of ip-netns(8). The thread is never used again.
func inside(namespace string, calls func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		file, err := os.Open("/run/netns/" + namespace)
		if err == nil {
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
			file.Close()
		}
		if err == nil {
			err = calls()
		}
		result <- err
	}()
	return <-result
}
