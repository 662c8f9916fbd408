// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// Dir is an opened directory. All methods work in this directory, even if another one takes its path. A name is a plain
// name, never a path.
type Dir struct {
	Path string // by which the directory was opened

	// Running is the name of the running file in the directory. Exe leads to that file even after its name is gone.
	// OpenRunning sets both.
	Running, Exe string

	// Step, if set, is called before each system call on a name or the lock: tests schedule processes with it.
	Step func(operation, name string)

	fd int
}

// Open opens a directory by its absolute path, following symlinks. execve(2) closes it. Other users may be able to
// write it: see OpenTrusted.
func Open(path string) (*Dir, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &dirError{&os.PathError{Op: "open", Path: path, Err: err}}
	}
	return &Dir{Path: path, fd: fd}, nil
}

// OpenTrusted opens a directory whose switch root may follow: see file.TrustedDir. Otherwise the error wraps
// file.ErrExposed.
func OpenTrusted(path string) (*Dir, error) {
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	if !d.isTrusted() {
		d.Close()
		return nil, fmt.Errorf("%q: %w", path, file.ErrExposed)
	}
	return d, nil
}

func (d *Dir) isTrusted() bool {
	st, err := d.Lstat(".")
	return err == nil && file.TrustedDir(d.Path, st)
}

// Close closes the directory, and releases its lock.
func (d *Dir) Close() { _ = unix.Close(d.fd) }

// Join returns the path of a name in the directory.
func (d *Dir) Join(name string) string { return filepath.Join(d.Path, name) }

// IsAt reports whether a path leads to the directory.
func (d *Dir) IsAt(path string) bool {
	st, err := d.Lstat(".")
	return err == nil && file.IsAt(path, st)
}

// do announces a system call to a test, makes it, and adds the path to its error.
func (d *Dir) do(operation, name string, call func() error) error {
	if d.Step != nil {
		d.Step(operation, name)
	}
	err := call()
	if err == nil {
		return nil
	}
	return &dirError{&os.PathError{Op: operation, Path: d.Join(name), Err: err}}
}

// dirError is the error of a system call in a directory. It wraps ErrDir, without its text.
type dirError struct{ error }

func (e *dirError) Is(target error) bool { return target == ErrDir }

func (e *dirError) Unwrap() error { return e.error }

// Lstat returns what lstat(2) returns for a name: a symlink is not followed.
func (d *Dir) Lstat(name string) (st unix.Stat_t, err error) {
	err = d.do("lstat", name, func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// Stat returns what stat(2) returns for a name: symlinks are followed.
func (d *Dir) Stat(name string) (st unix.Stat_t, err error) {
	err = d.do("stat", name, func() error { return unix.Fstatat(d.fd, name, &st, 0) })
	return st, err
}

// isRunning reports whether a name leads to the running file.
func (d *Dir) isRunning(name string) bool {
	st, err := d.Stat(name)
	return err == nil && file.IsAt(d.Exe, st)
}

func (d *Dir) isWritable() bool { return unix.Faccessat(d.fd, ".", unix.W_OK, 0) == nil }

// Readlink returns the content of a symlink.
func (d *Dir) Readlink(name string) (string, error) {
	var buf [unix.PathMax]byte
	var n int
	err := d.do("readlink", name, func() (err error) {
		n, err = unix.Readlinkat(d.fd, name, buf[:])
		return err
	})
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func (d *Dir) symlink(content, name string) error {
	return d.do("symlink", name, func() error { return unix.Symlinkat(content, d.fd, name) })
}

func (d *Dir) remove(name string) error {
	return d.do("unlink", name, func() error { return unix.Unlinkat(d.fd, name, 0) })
}

// replace gives a name to what create makes under a temporary name. It replaces whatever has the name, except a
// directory, at one instant. The temporary name is fixed, so killed processes leave at most one. Without the lock,
// several processes can replace the same name at once. One of them wins. The others may get ENOENT or EEXIST.
func (d *Dir) replace(name string, create func(temporary string) error) error {
	temporary := name + ".new"
	err := d.remove(temporary) // left by a killed process
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	err = create(temporary)
	if err != nil {
		return err
	}
	err = d.do("rename", name, func() error { return unix.Renameat(d.fd, temporary, d.fd, name) })
	if err != nil && !errors.Is(err, unix.ENOENT) { // ENOENT: another process has renamed or removed it
		_ = d.remove(temporary) // the first error is the one to report
	}
	return err
}

// Replace makes a symlink in the place of whatever has the name.
func (d *Dir) Replace(content, name string) error {
	return d.replace(name, func(temporary string) error { return d.symlink(content, temporary) })
}

// WriteProgram writes an executable file in the place of whatever has the name. It syncs the file first: after a power
// failure, no symlink must lead to an empty file.
func (d *Dir) WriteProgram(name string, content []byte) error {
	return d.replace(name, func(temporary string) error {
		var fd int
		err := d.do("create", temporary, func() (err error) {
			fd, err = unix.Openat(d.fd, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o755)
			return err
		})
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), d.Join(temporary))
		_, err = f.Write(content)
		err = errors.Join(err, f.Chmod(0o755), f.Sync(), f.Close()) // 0o755 whatever the umask
		if err != nil {
			_ = d.remove(temporary)
			return &dirError{err}
		}
		return nil
	})
}

// Patience is how long select, reset and install wait for the lock. Then they continue without it: no call holds it
// that long, but any user can.
const Patience = 2 * time.Second

// Lock takes the directory's flock(2), which Close and execve(2) release. It tries every millisecond, for as long as
// patience. The error wraps EWOULDBLOCK if another process still has the lock.
func (d *Dir) Lock(patience time.Duration) error {
	for left := patience; ; left -= time.Millisecond {
		err := d.do("lock", "", func() error { return unix.Flock(d.fd, unix.LOCK_EX|unix.LOCK_NB) })
		if !errors.Is(err, unix.EWOULDBLOCK) || left <= 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
