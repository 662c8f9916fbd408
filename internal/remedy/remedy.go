// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package remedy has the one table of what the user can do about an error. Calls, commands and doctor print it.
package remedy

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
)

// Errors of the commands. They stand here because a wrapped call links the table, and must not link install or command.
var (
	ErrUncertain = errors.New("not certain")
	ErrNotStored = errors.New("not certain, nothing is stored")
	// ErrNotAsked means that a guess must not be stored, because a question failed.
	ErrNotAsked = errors.New("nothing is stored, because the kernel did not answer")
	// ErrOtherNetwork protects an agent in a Pod's network namespace from storing that Pod's backend for itself.
	ErrOtherNetwork = errors.New("this is not known to be the network namespace of process 1")
	// ErrOwnProgram means that the commands would run the wrapper instead of a program of iptables: the wrapper has
	// overwritten that program, or the program's path leads through one of the six commands.
	ErrOwnProgram = errors.New("the wrapper is, or would be, in the place of iptables' own program")
	// ErrInstall is in each error of install. Its text is the command's name.
	ErrInstall = errors.New("install")
	// ErrOutput means that the standard output cannot be written.
	ErrOutput = errors.New("the output cannot be written")
	// ErrNoFile means that install has nothing to copy.
	ErrNoFile = errors.New("the running file cannot be read")
)

// Exit statuses of a call that could not run a program, as shells and env(1) use them. The wrapper never exits with 1,
// which clients of iptables take for "no such rule".
const (
	statusUsage    = 2
	statusUnusable = 126 // the program exists and cannot be executed
	statusMissing  = 127 // the program, or what loads it, is missing
)

const (
	wrapper    = "iptables-wrapper"
	multiCalls = "xtables-nft-multi or xtables-legacy-multi"
	limits     = "raise the limit on open files, ulimit -n, or free memory"
	space      = "free space and inodes on that file system, then run this again"
)

// errExec stands for each error of executing a program, or of checking whether it can be executed.
var errExec = errors.New("exec")

// A row has what to do about an error. What an errno means depends on what failed, so the row of an errno has that,
// too.
type row struct {
	is     error
	at     error // what failed, nil if the error tells
	status int   // of a call, statusUnusable if 0
	try    string
}

// table returns the rows. The first one that matches wins. It is no variable, which would cost each call its
// initialization.
func table() []row {
	return []row{
		{is: plan.ErrVariable, status: statusUsage, try: "set it to one of these, or unset it"},
		{is: plan.ErrSetUID, try: "remove the wrapper's set-user-ID bit (chmod u-s), and run it as root"},
		{is: plan.ErrNoProc, try: "mount /proc of this PID namespace, or enter that namespace, too: nsenter --pid"},
		{is: plan.ErrScarce, try: limits},
		{is: ErrUncertain, try: wrapper + " doctor, which prints what to do about it"},
		{is: ErrNotStored, try: "name the host's backend if you know it, or select without --strict"},
		{is: ErrNotAsked, try: "select where the container runs, not in an image build, and with CAP_NET_ADMIN; " +
			"or name the backend"},
		{is: ErrOtherNetwork, try: wrapper + " select nft or select legacy, if you know the backend"},
		{is: ErrOutput, try: "check where the standard output leads, then run this again"},
		{is: ErrNoFile, try: "mount /proc, or call the wrapper by a path that this user may read"},

		{is: file.ErrExposed, status: statusMissing, try: "chown -h it to root, and chmod go-w it"},
		{is: exec.ErrMissing, at: ErrInstall,
			try: "install iptables 1.8.8 or newer, with both backends, then run this again"},
		{is: exec.ErrMissing, at: plan.ErrByVariable, status: statusMissing,
			try: "install that backend's iptables; if this is the wrong backend, change " + plan.Variable},
		{is: exec.ErrMissing, status: statusMissing,
			try: "install this backend's iptables in this image; if the backend is wrong, set " + plan.Variable},
		{is: ErrOwnProgram, try: "install the iptables package again, or give its program the name " + multiCalls},
		{is: exec.ErrItself,
			try: "unmount what covers iptables' own program, or install the iptables package again"},

		{is: unix.ENOENT, at: errExec, status: statusMissing,
			try: "install the libraries of that program: its loader is missing"},
		{is: unix.ENOEXEC, at: errExec, try: "install iptables for the architecture of this machine"},
		{is: unix.EACCES, at: errExec,
			try: "run as root; if you are, check the file's mode, and that its file system is not mounted noexec"},
		{is: unix.EPERM, at: errExec,
			try: "run as root; if the file has capabilities (getcap), add them to this container, or remove " +
				"them from the file"},
		{is: unix.E2BIG, at: errExec,
			try: "pass fewer arguments or a smaller environment; the program's path counts, too"},
		{is: unix.EMFILE, at: errExec, try: limits},
		{is: unix.ENOMEM, at: errExec, try: limits},
		{is: errExec, try: Unknown},

		{is: link.ErrForeign, try: "move that file away, or replace it with install --force"},
		{is: link.ErrNotWrapped,
			try: wrapper + " install, unless an agent that enters Pods needs links straight to the wrapper"},
		{is: link.ErrSingle, try: "make it a symlink to " + multiCalls + ", or set " + plan.Variable},
		{is: link.ErrRecord, try: "restart the container: the record in its /dev goes with it"},
		{is: unix.EROFS, at: ErrInstall,
			try: "install when the image is built: RUN " + wrapper + " install"},
		{is: unix.EROFS, at: link.ErrStored,
			try: "reset the switch where it comes from: RUN " + wrapper + " reset in the image, or a writable " +
				"mount of that volume"},
		{is: unix.EROFS, at: link.ErrDir,
			try: "set " + plan.Variable + " to nft or legacy in the environment of the container"},
		{is: unix.EACCES, at: link.ErrDir,
			try: "run as root; if you are, check what restricts this container: AppArmor, SELinux or its user " +
				"namespace"},
		{is: unix.EPERM, at: link.ErrDir,
			try: "run as root; if you are, the directory or the file may be immutable: lsattr -d, chattr -i"},
		{is: unix.ENOSPC, at: link.ErrDir, try: space},
		{is: unix.EDQUOT, at: link.ErrDir, try: space},
		{is: unix.EMFILE, at: link.ErrDir, try: limits},
		{is: link.ErrDir, try: "check that directory and its file system, then run this again"},
		{is: ErrInstall, try: "check that path and the mode of its directories, then run this again"},
	}
}

// Unknown is what to do about a program that does not run for a reason that the table does not have.
const Unknown = "run that file by its path to see what is wrong"

// For returns the exit status of a call that fails with an error, and what the user can do about it, "" if the table
// does not have the error.
func For(err error) (status int, try string) {
	for _, row := range table() {
		if is(err, row.is) && (row.at == nil || is(err, row.at)) {
			return cmp.Or(row.status, statusUnusable), row.try
		}
	}
	return statusUnusable, ""
}

// is is errors.Is, and for errExec whether package exec has returned the error.
func is(err, target error) bool {
	var path *os.PathError
	if target == errExec {
		return errors.As(err, &path) && strings.HasPrefix(path.Op, "exec") // execve(2), and execute: package exec
	}
	return errors.Is(err, target)
}
