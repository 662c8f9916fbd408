// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// run makes a wrapped call. It returns only if the program cannot be executed, and then returns the exit status.
func run(argv, env []string, stderr io.Writer) int {
	command := filepath.Base(argv[0])
	err := become(command, argv, env)
	status, try := remedy.For(err)
	what := strings.ReplaceAll(err.Error(), "\n", "; ")
	try = cmp.Or(try, remedy.Unknown)
	fmt.Fprintf(stderr, "iptables-wrapper: cannot run %s: %s\niptables-wrapper: try: %s\n", command, what, try)
	return status
}

// become chooses a backend, keeps the answer, and becomes that backend's program. It returns only an error.
func become(command string, argv, env []string) error {
	if unix.Getuid() != unix.Geteuid() {
		return remedy.ErrSetUID
	}
	wanted, err := Wanted()
	if err != nil {
		return err
	}
	running, err := os.Readlink(file.Running)
	if err != nil {
		return fmt.Errorf("%w: %w", remedy.ErrNoProc, err) // Find could not tell the wrapper from a program
	}
	dir := filepath.Dir(running)
	if wanted.Valid() {
		program, err := exec.Find(wanted, command, dir)
		if err == nil {
			err = exec.Become(program, argv, env)
		}
		return fmt.Errorf("%w (%s: %w)", err, wanted, remedy.ErrByVariable)
	}

	own, dirErr := link.Here(running)
	record, recordErr := link.OpenRecord()
	r, hostErr := detect.Host(record.Read())
	failed := errors.Join(dirErr, recordErr, hostErr)
	if Scarce(failed) && !r.Certain && r.Reason != detect.Held {
		return fmt.Errorf("%w: %w", remedy.ErrScarce, failed)
	}
	backend, program, err := Find(r, command, dir)
	if err == nil && r.Reason != detect.Held {
		if unix.Geteuid() != 0 || hostErr != nil && !r.Certain {
			own = nil // condition 1 of Keep
		}
		kept := link.Keep(own, record, backend, program.Path, r.Certain)
		if kept != backend { // another call has kept the other backend meanwhile
			program, err = exec.Find(kept, command, dir)
		}
	}
	if err == nil {
		err = exec.Become(program, argv, env)
	}
	return fmt.Errorf("%w (%s)", err, r)
}

// Variable is the environment variable that chooses the backend of one call.
const Variable = remedy.Variable

// Wanted returns the backend that Variable names, "" if it is unset or auto.
func Wanted() (detect.Backend, error) {
	value := os.Getenv(Variable)
	backend := detect.Backend(value)
	switch {
	case value == "", value == "auto":
		return "", nil
	case backend.Valid():
		return backend, nil
	}
	return "", fmt.Errorf("%w: %q", remedy.ErrVariable, value)
}

// Scarce reports whether err means that memory or descriptors were short. The question may succeed a moment later, so
// the caller must not act on a guess.
func Scarce(err error) bool {
	for _, errno := range [...]unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// Find returns the backend that a call with this result runs, and its program, as exec.Find finds it. If only the other
// backend's program is there, Find returns that one for a guess: it would run without a wrapper, too. Find does not for
// a certain answer, because the host would not see the rules, nor for Held or OnlySupported.
func Find(r detect.Result, command string, dirs ...string) (detect.Backend, exec.Program, error) {
	program, err := exec.Find(r.Backend, command, dirs...)
	mayBeOther := !r.Certain && r.Reason != detect.Held && r.Reason != detect.OnlySupported
	if !mayBeOther || !errors.Is(err, exec.ErrMissing) {
		return r.Backend, program, err
	}
	other, otherErr := exec.Find(r.Backend.Other(), command, dirs...)
	if otherErr != nil {
		return r.Backend, program, err
	}
	return r.Backend.Other(), other, nil
}
