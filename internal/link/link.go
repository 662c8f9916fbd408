// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package link reads and changes the symlinks that decide which backend the six commands run.
//
//	DIR/iptables, ip6tables-save, ...  -> iptables-current
//	DIR/iptables-current               -> iptables-wrapper, xtables-nft-multi or xtables-legacy-multi
//	/dev/iptables-backend-4026532267   -> nft or legacy
//
// The second one is the switch: one rename(2) changes all six commands at one instant, or none. The third one is the
// record of the backend that is in use in a network namespace.
package link

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

const (
	// Switch is the name of the switch.
	Switch = "iptables-current"
	// Wrapper is the name of the wrapper's file beside the switch.
	Wrapper = "iptables-wrapper"
)

var (
	// ErrForeign means that a file of another program has the name of the switch, or one of the six commands.
	ErrForeign = errors.New("it belongs neither to iptables nor to iptables-wrapper")
	// ErrNotWrapped means that the six commands, or one that exists, do not lead to the switch.
	ErrNotWrapped = errors.New("the commands of iptables do not lead to the wrapper's switch")
	// ErrSingle means that the switch cannot point to a program, because it implements only one of the six commands.
	ErrSingle = errors.New("it is not the program that implements all six commands")
	// ErrDir means that a system call in a directory of commands failed: what the errno in it means depends on that.
	ErrDir = errors.New("directory")
	// ErrRecord means that the record is still there.
	ErrRecord = errors.New("the record stays")
	// ErrStored means that the switch still points to a program, because it could not be changed.
	ErrStored = errors.New("a backend is stored in the switch")
)

// OpenRunning opens DIR, the directory of the running file. running is the content of file.Running. It fails if that
// path no longer leads to the running file, or if an emulator runs the file. Others may be able to write the directory.
func OpenRunning(running string) (*Dir, error) {
	d, err := Open(filepath.Dir(running))
	if err != nil {
		return nil, err
	}
	d.Running = filepath.Base(running)
	d.Exe = file.Running
	st, err := d.Lstat(d.Running)
	if err != nil || !file.IsAt(file.Running, st) { // a symlink is another file
		d.Close()
		return nil, fmt.Errorf("%q is not the running file", running)
	}
	return d, nil
}

// Stored returns the backend to whose program the switch points, "" if it points to the wrapper. The error wraps
// os.ErrNotExist if there is no switch, and ErrForeign if another file has its name.
func (d *Dir) Stored() (detect.Backend, error) {
	content, err := d.Readlink(Switch)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return "", err
	}
	name := filepath.Base(content)
	if name == Wrapper {
		return "", nil
	}
	for _, backend := range detect.Backends() {
		if name == iptables.MultiCall(string(backend)) {
			return backend, nil
		}
	}
	return "", fmt.Errorf("%q: %w", d.Join(Switch), ErrForeign)
}

// ContentFor returns the content with which the switch points to a backend's program: the file to which the program's
// path resolves, only its name if the file is in this directory. The error wraps ErrSingle.
func (d *Dir) ContentFor(backend detect.Backend, program string) (string, error) {
	target, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "", &dirError{err}
	}
	name := filepath.Base(target)
	if name != iptables.MultiCall(string(backend)) {
		return "", fmt.Errorf("%q: %w", target, ErrSingle)
	}
	if d.IsAt(filepath.Dir(target)) {
		return name, nil
	}
	return target, nil
}
