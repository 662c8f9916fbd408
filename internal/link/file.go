// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// WriteProgram writes an executable file. It replaces whatever has the name, except a directory, at one instant. The
// file is synced first: after a power failure, no link must lead to an empty file.
//
// The caller holds the lock.
func (d *Dir) WriteProgram(name string, content []byte) error {
	unfinished := temporary(name)
	_ = d.Remove(unfinished) // of a process that was killed; if this fails, so does Openat
	d.step("create", name)
	fd, err := unix.Openat(d.fd, unfinished, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return d.fail("create", unfinished, err)
	}
	f := os.NewFile(uintptr(fd), d.Join(unfinished))
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o755) // whatever the umask
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		d.step("rename", name)
		err = d.fail("rename", name, unix.Renameat(d.fd, unfinished, d.fd, name))
	}
	if err != nil {
		_ = d.Remove(unfinished) // the first error is the one to report
	}
	return err
}
