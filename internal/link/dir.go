// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// Dir is an opened directory. A name is a plain name in it, never a path. All methods work in the same directory, even
// if another one takes its path.
type Dir struct {
	fd   int
	path string

	// running is the name of the running file, a plain file in the directory, and the file itself; the zero values if
	// it is not known. Here sets them.
	running     string
	runningFile unix.Stat_t

	// Step, if set, is called before each system call that reads or changes a name or the lock. Tests use it to
	// schedule processes.
	Step func(operation, name string)
}

// fileType returns S_IFREG, S_IFLNK and so on.
func fileType(st unix.Stat_t) uint32 { return st.Mode & unix.S_IFMT }

// Open opens a directory by its absolute path. Links on the way are followed. execve(2) closes it.
func Open(path string) (*Dir, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Dir{fd: fd, path: path}, nil
}

// Close closes the directory, and releases its lock.
func (d *Dir) Close() { _ = unix.Close(d.fd) }

// Path returns the path by which the directory was opened.
func (d *Dir) Path() string { return d.path }

// Join returns the path of a name in the directory.
func (d *Dir) Join(name string) string {
	if d.path == "/" {
		return "/" + name
	}
	return d.path + "/" + name
}

// step announces a system call to a test.
func (d *Dir) step(operation, name string) {
	if d.Step != nil {
		d.Step(operation, name)
	}
}

func (d *Dir) fail(operation, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: operation, Path: d.Join(name), Err: err}
}

// IsAt reports whether a path leads to the directory.
func (d *Dir) IsAt(path string) bool {
	st, err := d.Stat(".")
	return err == nil && file.IsAt(path, st)
}

// CheckWritable returns nil if this process may make names in the directory.
func (d *Dir) CheckWritable() error {
	return d.fail("write to", "", unix.Faccessat(d.fd, ".", unix.W_OK, 0))
}

// Lstat returns what lstat(2) returns for a name: a symlink is not followed.
func (d *Dir) Lstat(name string) (st unix.Stat_t, err error) {
	d.step("lstat", name)
	err = unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, d.fail("lstat", name, err)
}

// Stat returns what stat(2) returns for a name: symlinks are followed.
func (d *Dir) Stat(name string) (st unix.Stat_t, err error) {
	d.step("stat", name)
	err = unix.Fstatat(d.fd, name, &st, 0)
	return st, d.fail("stat", name, err)
}

// Readlink returns the content of a symlink.
func (d *Dir) Readlink(name string) (string, error) {
	d.step("readlink", name)
	var buf [512]byte
	n, err := unix.Readlinkat(d.fd, name, buf[:])
	if err == nil && n == len(buf) {
		err = unix.ENAMETOOLONG // the content may be cut off
	}
	if err != nil {
		return "", d.fail("readlink", name, err)
	}
	return string(buf[:n]), nil
}

// Symlink makes a symlink. The error wraps EEXIST if the name exists.
func (d *Dir) Symlink(content, name string) error {
	d.step("symlink", name)
	return d.fail("symlink", name, unix.Symlinkat(content, d.fd, name))
}

// Link makes a hard link to a plain file in the directory.
func (d *Dir) Link(existing, name string) error {
	d.step("link", name)
	return d.fail("link", name, unix.Linkat(d.fd, existing, d.fd, name, 0))
}

// Remove removes a name, unless it is a directory.
func (d *Dir) Remove(name string) error {
	d.step("unlink", name)
	return d.fail("unlink", name, unix.Unlinkat(d.fd, name, 0))
}

// temporary returns the name of the file that Replace and WriteProgram rename. It is fixed, so killed processes leave
// at most one.
func temporary(name string) string { return name + ".new" }

// Replace makes a symlink. It replaces whatever has the name, except a directory, at one instant.
//
// Without the lock, several processes can replace the same name at once. One of them wins, and none leaves a temporary
// link unless it is killed.
func (d *Dir) Replace(content, name string) error {
	err := d.Remove(temporary(name)) // of a process that was killed
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	err = d.Symlink(content, temporary(name))
	if err != nil {
		return err
	}
	d.step("rename", name)
	err = unix.Renameat(d.fd, temporary(name), d.fd, name)
	switch err {
	case nil:
		return nil
	case unix.ENOENT:
		err = errRaced // the other process has removed or renamed the temporary link
	default:
		_ = d.Remove(temporary(name)) // the first error is the one to report
	}
	return d.fail("rename", name, err)
}

// errRaced means that a process without the lock was faster.
var errRaced = errors.New("another process has changed it meanwhile")

// Lock takes the directory's flock(2), which Close and execve(2) release. While another process has the lock, Lock
// tries again every millisecond. The error wraps EWOULDBLOCK if the other process has it for longer than patience.
func (d *Dir) Lock(patience time.Duration) error {
	for left := patience; ; left -= time.Millisecond {
		d.step("lock", "")
		err := unix.Flock(d.fd, unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK || left <= 0 {
			return d.fail("lock", "", err)
		}
		time.Sleep(time.Millisecond)
	}
}
