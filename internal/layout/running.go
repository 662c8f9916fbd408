// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
)

// exe leads to the running file, even if that has been renamed or removed.
const exe = "/proc/self/exe"

// atExecfn is AT_EXECFN of linux/auxvec.h: the address of the path that was passed to execve(2).
const atExecfn = 31

// Running returns the path by which this process was executed, and the running file. Without /proc, the file is the one
// at that path.
func Running() (path string, file dir.ID) {
	path = executedPath()
	file, err := dir.IDAt(exe)
	if err != nil {
		file, _ = dir.IDAt(path)
	}
	return path, file
}

// executedPath reads AT_EXECFN from the auxiliary vector, see getauxval(3). That needs no /proc.
func executedPath() string {
	auxv, _ := unix.Auxv()
	for _, entry := range auxv {
		if value := entry[1]; entry[0] == atExecfn {
			// A pointer into this process' stack, where the kernel put the string.
			return unix.BytePtrToString(*(**byte)(unsafe.Pointer(&value)))
		}
	}
	return ""
}

// RunningPath returns the absolute path of the running file, "" if that is not known or has been removed.
func RunningPath() string {
	path, file := Running()
	executed := absolute(path)
	linked, _ := os.Readlink(exe)
	for _, candidate := range []string{linked, executed} {
		if file.IsAt(candidate) {
			return candidate
		}
	}
	// Under qemu-user, stat(2) of /proc/self/exe leads to the emulator, and readlink(2) to our file.
	id, err := dir.IDAt(linked)
	if err == nil && id.IsAt(executed) {
		return linked
	}
	return ""
}

// absolute makes a path absolute. It cleans nothing: ".." means something else once a symlink before it is followed.
func absolute(path string) string {
	if path == "" || path[0] == '/' {
		return path
	}
	working, err := os.Getwd()
	if err != nil {
		return ""
	}
	return working + "/" + path
}
