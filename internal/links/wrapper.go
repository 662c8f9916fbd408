// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// WrapperName is the name of the wrapper's own file.
const WrapperName = "iptables-wrapper"

// Wrapper is the running wrapper.
type Wrapper struct {
	Tree

	// Called is the path that the caller passed to execve(2). It may be relative, and may lead through symlinks.
	Called string

	Marker string // never read: it keeps the marker that IsWrapper looks for in the executable

	// file identifies the running executable; zero where that is unknown. Then any wrapper is taken for this one.
	file fileID

	secure bool // AT_SECURE: the process has privileges that its caller does not have
	setID  bool // it runs set-user-ID or set-group-ID
	uid    int  // effective

	// What tests say of the surroundings, instead of /proc.
	path      string
	container *Container
}

// Entries of the auxiliary vector, from linux/auxvec.h. golang.org/x/sys/unix has none of them.
const (
	atSecure = 23 // AT_SECURE
	atExecfn = 31 // AT_EXECFN
)

// Started returns the running wrapper. It reads the auxiliary vector, see getauxval(3), which needs no /proc. The marker is
// programs.Marker as a literal: passing it here is what puts it into the executable.
func Started(marker string) Wrapper {
	w := Wrapper{Marker: marker, uid: os.Geteuid(), setID: os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid()}
	if len(os.Args) > 0 { // before Linux 5.18 a program can be started without any
		w.Called = os.Args[0]
	}
	if auxv, err := unix.Auxv(); err == nil {
		for _, entry := range auxv {
			switch value := entry[1]; entry[0] {
			case atExecfn:
				// A pointer into this process' stack, where the kernel put the string.
				w.Called = unix.BytePtrToString(*(**byte)(unsafe.Pointer(&value)))
			case atSecure:
				w.secure = value != 0
			}
		}
	}
	w.file = executable(w.Called)
	return w
}

// executable identifies the running executable. Under qemu-user, stat(2) of /proc/self/exe shows the emulator, while
// readlink(2) shows the program: then the executable is unknown, and the marker in the file tells a wrapper.
func executable(called string) fileID {
	const self = "/proc/self/exe"
	exe, err := Tree{}.Stat(self)
	if err != nil {
		return fileID{}
	}
	if named, err := (Tree{}).Stat(called); err == nil && idOf(named) == idOf(exe) {
		return idOf(exe)
	}
	// The name that was called leads elsewhere by now, or this is the emulator.
	if path, err := os.Readlink(self); err == nil {
		if named, err := (Tree{}).Stat(path); err == nil && idOf(named) != idOf(exe) {
			return fileID{}
		}
	}
	return idOf(exe)
}

// Trusted reports whether the caller's environment and the container's memory may be believed: not if the wrapper runs
// set-user-ID or set-group-ID. File capabilities are fine, because the caller can run both backends' programs itself.
func (w Wrapper) Trusted() bool { return !w.setID }

// Override returns the backend that the caller's environment asks for, "" if none.
func (w Wrapper) Override() (detect.Mode, error) {
	if !w.Trusted() {
		return "", nil
	}
	mode, err := programs.ParseMode(process.Variable(programs.ModeVariable))
	if err != nil {
		err = fmt.Errorf("environment variable %s: %w", programs.ModeVariable, err)
	}
	return mode, err
}

// Privileged reports whether this process has privileges that its caller does not have, by set-user-ID, set-group-ID or file
// capabilities.
func (w Wrapper) Privileged() bool { return w.secure }

// In returns the wrapper at work in another tree.
func (w Wrapper) In(t Tree) Wrapper {
	w.Tree = t
	return w
}

// isSelf reports whether a file is the running executable.
func (w Wrapper) isSelf(path string, st unix.Stat_t) bool {
	if w.file == (fileID{}) || !w.Own() {
		return w.IsWrapper(path)
	}
	return idOf(st) == w.file
}

// Path returns the absolute path of the running executable, free of symlinks in its last element. It fails if the file has
// been removed or replaced.
func (w Wrapper) Path() (string, error) {
	if w.path != "" {
		return w.path, nil
	}
	path, err := absolute(w.Called)
	if err != nil {
		return "", err
	}
	c, err := Tree{}.Follow(path)
	if err == nil && w.In(Tree{}).isSelf(c.End, c.Stat) {
		return c.End, nil
	}
	if exe, err := os.Readlink("/proc/self/exe"); err == nil {
		if st, err := (Tree{}).Stat(exe); err == nil && w.In(Tree{}).isSelf(exe, st) {
			return exe, nil
		}
	}
	return "", fmt.Errorf("find the wrapper's own file: %w", &os.PathError{Op: "stat", Path: path, Err: unix.ENOENT})
}

// absolute puts the working directory before a relative path, and changes nothing else.
func absolute(path string) (string, error) {
	if path != "" && path[0] == '/' {
		return path, nil
	}
	cwd, err := unix.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	return programs.Join(cwd, path), nil
}

// Dir returns the directory of the six commands where none is given: that of the running executable if a command or
// iptables-nft is there, else the first standard one of which that holds, else that of the running executable. In another
// tree, only the standard ones count.
func (w Wrapper) Dir() (string, error) {
	dirs := programs.StandardDirs()
	if w.Own() {
		path, err := w.Path()
		if err != nil {
			return "", err
		}
		dirs = slices.Insert(dirs, 0, programs.Dir(path))
	}
	return dirs[max(slices.IndexFunc(dirs, w.hasIptables), 0)], nil
}

func (t Tree) hasIptables(dir string) bool {
	files := append(programs.Names(), programs.MultiCall(detect.NFT), programs.Single(detect.NFT, "iptables"))
	return slices.ContainsFunc(files, func(name string) bool {
		_, err := t.Lstat(programs.Join(dir, name))
		return err == nil
	})
}

// FindBoth looks for the programs of a command in both backends, as FindIn does. only is the backend that alone has one; a
// program that exists and cannot be executed is not missing.
func (w Wrapper) FindBoth(dir, name string) (paths map[detect.Mode]string, errs map[detect.Mode]error, only detect.Mode) {
	paths, errs = map[detect.Mode]string{}, map[detect.Mode]error{}
	for _, mode := range programs.Modes() {
		paths[mode], errs[mode] = w.FindIn(dir, mode, name)
	}
	switch nft, legacy := errs[detect.NFT], errs[detect.Legacy]; {
	case nft == nil && errors.Is(legacy, programs.ErrMissing):
		only = detect.NFT
	case legacy == nil && errors.Is(nft, programs.ErrMissing):
		only = detect.Legacy
	}
	return paths, errs, only
}

// FindIn returns the program that implements a command in one backend. It looks in the directory, beside the running
// executable, and in the standard directories; for a caller with fewer privileges than this process, only in those. The
// path is relative if the directory is. Errors are those of programs.Find.
func (w Wrapper) FindIn(dir string, mode detect.Mode, name string) (string, error) {
	files := []string{programs.MultiCall(mode), programs.Single(mode, name)}
	return programs.Find(w.dirs(dir), files, w.Stat, func(path string, st unix.Stat_t) (bool, error) { return w.isSelf(path, st), nil })
}

func (w Wrapper) dirs(first string) iter.Seq[string] {
	return func(yield func(string) bool) {
		dirs := programs.StandardDirs()
		if w.secure {
			slices.Values(dirs)(yield)
			return
		}
		if !yield(first) {
			return
		}
		if path, err := w.Path(); err == nil && w.Own() {
			dirs = slices.Insert(dirs, 0, programs.Dir(path))
		}
		for i, dir := range dirs {
			if dir != first && !slices.Contains(dirs[:i], dir) && !yield(dir) {
				return
			}
		}
	}
}

// ErrPrivileged means that the caller has fewer privileges than this process, which therefore changes nothing for it.
var ErrPrivileged = errors.New("the caller has fewer privileges than this process")
