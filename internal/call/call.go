// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// Exit statuses of a command that could not be run, as shells and env(1) use them. The wrapper never exits with 1,
// which clients of iptables take for "no such rule".
const (
	statusUsage    = 2
	statusUnusable = 126 // the program exists and cannot be executed
	statusMissing  = 127 // there is no such program
)

// run decides, stores the decision as far as it may, and becomes the program. It returns only if that fails, with an
// exit status.
func run(argv []string, stderr io.Writer) int {
	name := filepath.Base(argv[0])
	if unix.Getuid() != unix.Geteuid() || unix.Getgid() != unix.Getegid() {
		err := fmt.Errorf("%s must not run set-user-ID or set-group-ID", name)
		return fail(stderr, statusUnusable, err, "chmod ug-s, and run it as root")
	}
	override, err := Override()
	if err != nil {
		return fail(stderr, statusUsage, err, "set it to one of these, or unset it")
	}
	path, running := layout.Running()
	place := layout.Locate(path, running)
	found := find(place, running, name)

	mayAdd := adds(argv)
	m := memory.Find(place.Dir)
	q := evidence.Query{
		Override:   override,
		Remembered: m.Read(),
		Installed:  found.Only(),
		DryRun:     mayAdd,
		NAT:        mayAdd && needsNAT(argv),
	}
	r := q.Ask()

	d := r.Decision
	if found[d.Mode].Err == nil {
		d = layout.Keep(layout.Call{
			Decision:   d,
			Remembered: q.Remembered,
			Adds:       mayAdd,
			Changes:    changes(argv),
			Incomplete: r.Momentary() || r.Denied(),
			Root:       unix.Geteuid() == 0,
			Own:        memory.OfContainer(),
			Memory:     m,
			Place:      place,
		})
	}
	err = found[d.Mode].Err
	if err == nil {
		err = exec.Become(found[d.Mode].Path, argv)
	}
	return cannotRun(stderr, name, d, err)
}

// find finds the programs of a command: in the directory of the switch, beside the running file, and in the standard
// directories.
func find(place layout.Place, running dir.ID, command string) layout.Programs {
	var dirs []string
	if place.Dir != nil {
		dirs = append(dirs, place.Dir.Path())
	}
	file, err := os.Readlink("/proc/self/exe")
	if err == nil {
		dirs = append(dirs, filepath.Dir(file))
	}
	return layout.FindPrograms(command, running, dirs...)
}

// ModeVariable is the environment variable that decides for one call.
const ModeVariable = "IPTABLES_WRAPPER_MODE"

// Override returns the backend that the environment asks for, "" if none.
func Override() (evidence.Mode, error) {
	value := os.Getenv(ModeVariable)
	mode := evidence.Mode(value)
	switch {
	case value == "", value == "auto":
		return "", nil
	case mode.Valid():
		return mode, nil
	}
	return "", fmt.Errorf("environment variable %s: %q is not one of auto, nft, legacy", ModeVariable, value)
}

// cannotRun says why the backend that was decided for does not run. The other backend is no substitute: the host would
// not see its rules.
func cannotRun(stderr io.Writer, name string, d evidence.Decision, err error) int {
	status := statusUnusable
	wrong := "if the backend is wrong, set " + ModeVariable
	try := "let this user execute that file; " + wrong
	switch {
	case errors.Is(err, exec.ErrMissing):
		status = statusMissing
		try = fmt.Sprintf("install the %s version of iptables in this image; %s", d.Mode, wrong)
	case errors.Is(err, layout.ErrItself):
		try = "restore iptables' own program there"
	case errors.Is(err, unix.E2BIG):
		try = "pass fewer arguments or a smaller environment: the path of the program counts, too, and is longer than " +
			"that of the command"
	}
	return fail(stderr, status, fmt.Errorf("cannot run %s for %s: %w (%s)", name, d.Mode, err, d), try)
}

func fail(stderr io.Writer, status int, err error, try string) int {
	fmt.Fprintf(stderr, "iptables-wrapper: %v\niptables-wrapper: try: %s\n", err, try)
	return status
}
