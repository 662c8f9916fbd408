// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Iptables-wrapper sits under the six names of iptables in a container. At the first call it asks the kernel which
// backend the host uses, legacy or nft, points the names at the right programs, and becomes the one that was called.
// Called by its own name it is a command line, see cli.go.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// The environment variables that the wrapper reads. It reads none when it has more rights than its caller.
const (
	modeVariable  = "IPTABLES_WRAPPER_MODE"  // auto, nft or legacy
	debugVariable = "IPTABLES_WRAPPER_DEBUG" // 1: say on stderr what was decided
)

func main() {
	// What belongs to the first thread, such as PR_SET_PDEATHSIG, reaches the program only if that thread calls execve.
	exec.LockThread()
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	w := exec.Started()
	if len(args) > 0 {
		if name, ok := exec.Name(args[0]); ok {
			return wrap(w, name, args, stderr)
		}
	}
	return commandLine(w, args, stdout, stderr)
}

// wrap decides, keeps the decision if it is conclusive, and becomes the program. It returns only if that fails.
func wrap(w exec.Wrapper, name string, args []string, stderr io.Writer) int {
	exec.ReleaseSignals()
	override, err := modeFromEnvironment(w)
	if err != nil {
		return complain(stderr, failure{status: 2, err: err}) // who calls iptables gets no hint about another program
	}
	r := query(w, override).Run()
	program, err := w.Program(string(r.Mode), name)
	if err != nil {
		return complain(stderr, cannotRun(name, r, err))
	}

	var kept exec.Kept
	var why error
	switch {
	case !r.Conclusive:
		why = errors.New("not conclusive")
	case detect.InOwnNetns() == detect.No:
		why = errors.New("not the container's own network namespace")
	default:
		kept, why = w.Keep(string(r.Mode), program)
	}
	if os.Getenv(debugVariable) == "1" && !w.Secure {
		printDebug(stderr, r, len(kept), why, program)
	}
	err = exec.Become(program, args)
	kept.Undo()
	return complain(stderr, cannotRun(name, r, err))
}

// modeFromEnvironment returns "" for auto.
func modeFromEnvironment(w exec.Wrapper) (detect.Mode, error) {
	if w.Secure {
		return "", nil
	}
	mode, err := parseMode(os.Getenv(modeVariable))
	if err != nil {
		return "", usageError{fmt.Errorf("environment variable %s: %w", modeVariable, err)}
	}
	return mode, nil
}

func parseMode(s string) (detect.Mode, error) {
	switch s {
	case "", "auto":
		return "", nil
	case string(detect.NFT), string(detect.Legacy):
		return detect.Mode(s), nil
	default:
		return "", fmt.Errorf("%q is none of auto, nft, legacy", s)
	}
}

func query(w exec.Wrapper, override detect.Mode) detect.Query {
	return detect.Query{Override: override, Installed: func(m detect.Mode) bool { return w.Has(string(m)) }}
}

// cannotRun explains why the program that the evidence asks for does not run. The other backend would not do instead:
// its rules would be invisible to the host.
func cannotRun(name string, r detect.Result, err error) error {
	hint := fmt.Sprintf("put a working iptables for %s into this image, or set %s if the mode is wrong", r.Mode, modeVariable)
	if errors.Is(err, exec.ErrRecursion) {
		hint = "put iptables' own program back in that place"
	}
	return failure{
		status: exec.Status(err),
		err:    fmt.Errorf("cannot run %s for %s: %w (%s, because %s)", name, r.Mode, err, r.Reason, because(r)),
		hint:   hint,
	}
}
