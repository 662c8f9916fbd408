// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

var (
	errNoProc   = errors.New("/proc does not show the running file")
	errSetID    = errors.New("it runs set-user-ID or set-group-ID")
	errVariable = errors.New("environment variable " + Variable + " is not one of auto, nft, legacy")
	errScarce   = errors.New("cannot ask which backend the host uses")
)

// Exit statuses of a command that could not be run, as shells and env(1) use them. The wrapper never exits with 1,
// which clients of iptables take for "no such rule".
const (
	statusUsage    = 2
	statusUnusable = 126 // the program exists and cannot be executed
	statusMissing  = 127 // the program, or what loads it, is missing
)

// remedy returns the exit status for an error, and what the user can do. The first match wins.
func remedy(err error) (status int, try string) {
	for _, known := range [...]struct {
		err    error
		status int
		try    string
	}{
		{errVariable, statusUsage, "set it to one of these, or unset it"},
		{errSetID, statusUnusable, "chmod ug-s the wrapper, and run it as root"},
		{errNoProc, statusUnusable, "mount /proc"},
		{errScarce, statusUnusable, "raise the limit on open files, ulimit -n, or free memory"},
		{exec.ErrMissing, statusMissing,
			"install this backend's iptables in this image; if the backend is wrong, set " + Variable},
		{exec.ErrItself, statusUnusable, "restore iptables' own program there, or unmount what covers it"},
		{file.ErrExposed, statusUnusable, "chown the directory to root, and chmod go-w it"},
		{unix.ENOENT, statusMissing, "install the libraries of that program: its loader is missing"},
		{unix.ENOEXEC, statusUnusable, "install iptables for the architecture of this machine"},
		{unix.EACCES, statusUnusable, "check the file's mode, and that its file system is not mounted noexec"},
		{unix.EPERM, statusUnusable,
			"add the file's capabilities (getcap) to this container, or remove them from the file"},
		{unix.E2BIG, statusUnusable, "pass fewer arguments or a smaller environment; the program's path counts, too"},
	} {
		if errors.Is(err, known.err) {
			return known.status, known.try
		}
	}
	return statusUnusable, "run that file by its path to see what is wrong"
}
