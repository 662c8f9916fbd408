// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// Exit statuses of a command that could not be run, as shells and env(1) use them. The wrapper never exits with 1,
// which clients of iptables take for "no such rule".
const (
	statusUsage    = 2
	statusUnusable = 126 // the program exists and cannot be executed
	statusMissing  = 127 // the program, or what loads it, is missing
)

// failures are the errors of a call, with the status of each, and what the user can do. The first that fits counts.
var failures = []struct {
	err    error
	status int
	try    string
}{
	{
		err: errVariable, status: statusUsage,
		try: "set it to one of these, or unset it",
	},
	{
		err: errSetID, status: statusUnusable,
		try: "chmod ug-s the wrapper, and run it as root",
	},
	{
		err: errNoProc, status: statusUnusable,
		try: "mount /proc",
	},
	{
		err: errScarce, status: statusUnusable,
		try: "raise the limit on open files, of which a call needs eight, or call again when memory is free",
	},
	{
		err: exec.ErrMissing, status: statusMissing,
		try: "install this backend's iptables in this image; if the backend is wrong, set " + Variable,
	},
	{
		err: exec.ErrItself, status: statusUnusable,
		try: "restore iptables' own program there, or unmount what covers it",
	},
	{
		err: unix.ENOENT, status: statusMissing,
		try: "install the libraries of that program: its loader is missing",
	},
	{
		err: unix.ENOEXEC, status: statusUnusable,
		try: "install iptables for the architecture of this machine",
	},
	{
		err: unix.EACCES, status: statusUnusable,
		try: "check the file's mode, and that its file system is not mounted noexec",
	},
	{
		err: unix.E2BIG, status: statusUnusable,
		try: "pass fewer arguments or a smaller environment; the path of the program counts, too",
	},
}

// fail prints what went wrong, and what to do, and returns the exit status.
func fail(stderr io.Writer, command string, err error) int {
	status := statusUnusable
	try := "check the file's mode, architecture and libraries"
	for _, f := range failures {
		if errors.Is(err, f.err) {
			status, try = f.status, f.try
			break
		}
	}
	what := strings.ReplaceAll(err.Error(), "\n", "; ")
	fmt.Fprintf(stderr, "iptables-wrapper: cannot run %s: %s\niptables-wrapper: try: %s\n", command, what, try)
	return status
}
