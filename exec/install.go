// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrRefused: something would have to be replaced that is not iptables' own. Force does it.
var ErrRefused = errors.New("not replaced")

// Install makes the six names in a directory links to this wrapper, which it copies there if it runs from elsewhere.
// It returns a line for each thing that it changed. A name that is something else than a wrapper, or a link to one of
// iptables' programs, is replaced only by force, and a directory never; if there is one, nothing at all is changed.
func (w Wrapper) Install(d string, force bool) (changed []string, err error) {
	if w.Secure {
		return nil, ErrSecure
	}
	if info, err := os.Stat(d); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &os.PathError{Op: "install", Path: d, Err: unix.ENOTDIR}
	}
	defer patientLock(d)()

	own, err := w.ownPath()
	file := base(own)
	var copied []byte
	if err != nil || !sameFile(dir(own), d) {
		file = wrapperName
		if copied, err = planCopy(own, in(d, file), force); err != nil {
			return nil, err
		}
	}
	var replace []string
	var refused error
	for _, name := range names {
		path := in(d, name)
		old, _ := os.Readlink(path)
		if old == file || old == "" && path == in(d, file) {
			continue
		}
		if err := mayReplace(path, force); err != nil {
			refused = errors.Join(refused, err)
		}
		replace = append(replace, path)
	}
	if refused != nil {
		return nil, refused
	}

	if copied != nil {
		if err := writeWrapper(in(d, file), copied); err != nil {
			return nil, err
		}
		changed = append(changed, "copied the wrapper to "+in(d, file))
	}
	for _, path := range replace {
		if err := point(path, file); err != nil {
			return changed, err
		}
		changed = append(changed, path+" -> "+file)
	}
	return changed, nil
}

// planCopy returns what to write to the path, nil if it is there already. A link to it is not enough: it could lead to
// one of the six names, which will lead here.
func planCopy(own, path string, force bool) ([]byte, error) {
	content, err := os.ReadFile("/proc/self/exe") // the file that runs, wherever it is now
	if err != nil {
		content, err = os.ReadFile(own)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
			return nil, nil
		}
	}
	return content, mayReplace(path, force)
}

// mayReplace says whether what is at a path can go.
func mayReplace(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return &os.PathError{Op: "replace", Path: path, Err: unix.EISDIR}
	case force || isWrapper(path):
		return nil
	}
	c, err := follow(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %q leads nowhere, and may be somebody's: %w", ErrRefused, path, err)
	case c.end == path:
		return fmt.Errorf("%w: %q is a file that is not the wrapper", ErrRefused, path)
	case c.backend():
		return nil
	default:
		return fmt.Errorf("%w: %q leads to %q, which is neither a wrapper nor a program of iptables", ErrRefused, path, c.end)
	}
}

// writeWrapper puts the wrapper's file in its place, in one step.
func writeWrapper(path string, content []byte) error {
	temporary := temporaryName(path)
	_ = os.Remove(temporary) // of an earlier try that was killed
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o755), f.Close()) // whatever the umask
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}
