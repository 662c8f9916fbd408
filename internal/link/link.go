// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package link reads and changes the symlinks that decide which backend the six names run.
//
//	DIR/iptables, ip6tables-save, ...  -> iptables-current
//	DIR/iptables-current               -> iptables-wrapper, xtables-nft-multi or xtables-legacy-multi
//	/dev/iptables-backend-4026532267   -> nft or legacy
//
// The second one is the switch: one rename(2) changes all six names at one instant, or none. The third one is the
// record of the backend that is in use in a network namespace. Keep has the conditions under which a call writes them.
package link

import (
	"errors"
	"fmt"
	"os"
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
	// ErrNoProc means that /proc does not show the running file.
	ErrNoProc = errors.New("/proc does not show the running file")
	// ErrElsewhere means that the running file is no longer where it was started, or that an emulator runs it.
	ErrElsewhere = errors.New("it is not the running file")
	// ErrForeign means that a file of another program has the name of the switch, or one of the six names.
	ErrForeign = errors.New("it belongs neither to iptables nor to iptables-wrapper")
	// ErrSingle means that the switch cannot point to a program, because it implements only one of the six commands.
	ErrSingle = errors.New("it is not the program that implements all six commands")
)

// Here opens DIR, the directory of the running file, and notes that file in it. If there is no DIR, the error wraps
// ErrNoProc, ErrElsewhere, file.ErrExposed, or the errno of what failed.
func Here() (*Dir, error) {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoProc, err)
	}
	d, err := openSafe(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%q: %w", path, ErrElsewhere)
	}
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	st, err := d.Lstat(name)
	if err != nil || !file.IsRunning(st) { // a symlink is another file
		d.Close()
		return nil, fmt.Errorf("%q: %w", path, ErrElsewhere)
	}
	d.SetRunning(name, st)
	return d, nil
}

// SetRunning makes a file in the directory the running one, by its name and by what lstat(2) returns. Tests call it for
// files that stand in for the wrapper.
func (d *Dir) SetRunning(name string, st unix.Stat_t) {
	d.running = name
	d.runningFile = st
}

// openSafe opens a directory in which only root and the caller can change names.
func openSafe(path string) (*Dir, error) {
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	err = d.CheckSafe()
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// CheckSafe returns an error that wraps file.ErrExposed if users other than root and the caller can write the
// directory.
func (d *Dir) CheckSafe() error {
	st, err := d.Lstat(".")
	if err == nil && !file.Trusted(st) {
		err = fmt.Errorf("%q: %w", d.path, file.ErrExposed)
	}
	return err
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
	for _, backend := range [...]detect.Backend{detect.NFT, detect.Legacy} {
		if name == iptables.MultiCall(string(backend)) {
			return backend, nil
		}
	}
	return "", fmt.Errorf("%q: %w", d.Join(Switch), ErrForeign)
}

// contentFor returns the content with which the switch points to a backend's program: the name of the file to which the
// program's path finally leads, if the file is in this directory, otherwise its path. The error wraps ErrSingle if that
// file is not the one that implements all six commands.
func (d *Dir) contentFor(backend detect.Backend, program string) (string, error) {
	target, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "", err
	}
	name := filepath.Base(target)
	if name != iptables.MultiCall(string(backend)) {
		return "", fmt.Errorf("%q: %w", target, ErrSingle)
	}
	beside, err := d.Stat(name)
	if err != nil || !file.IsAt(target, beside) {
		return target, nil
	}
	return name, nil
}
