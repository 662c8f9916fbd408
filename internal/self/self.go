// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package self knows the process that was called: by which path, which file it runs, and whose privileges it has.
package self

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// WrapperName is the name of the wrapper's own file.
const WrapperName = "iptables-wrapper"

// Process is the running wrapper.
type Process struct {
	// Called is the path by which the wrapper was called. It may be relative, and may lead through symlinks. It
	// resolved to the running executable when the process started; if no such path is known, it is "".
	Called string

	// Executable is the path of the running executable where a test says so; otherwise Path finds it.
	Executable string

	UID    int  // effective
	Secure bool // AT_SECURE: the process has privileges that its caller does not have
	SetID  bool // it runs set-user-ID or set-group-ID

	// file identifies the running executable; zero where that is unknown. Then any wrapper is taken for this one.
	file tree.ID

	marker string // never read: it keeps the marker that IsWrapper looks for in the executable
}

// Entries of the auxiliary vector, from linux/auxvec.h. golang.org/x/sys/unix has none of them.
const (
	atSecure = 23 // AT_SECURE
	atExecfn = 31 // AT_EXECFN
)

// Started returns the running wrapper. It reads the auxiliary vector, see getauxval(3), which needs no /proc. The
// marker is programs.Marker as a literal: passing it here is what puts it into the executable.
func Started(marker string) Process {
	p := Process{marker: marker, UID: os.Geteuid(), SetID: os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid()}
	executed, secure := auxiliary()
	p.Secure = secure
	p.locate(executed, Arguments()[0])
	return p
}

// auxiliary returns AT_EXECFN, the path that was passed to execve(2), and AT_SECURE.
func auxiliary() (executed string, secure bool) {
	auxv, _ := unix.Auxv()
	for _, entry := range auxv {
		switch value := entry[1]; entry[0] {
		case atExecfn:
			// A pointer into this process' stack, where the kernel put the string.
			executed = unix.BytePtrToString(*(**byte)(unsafe.Pointer(&value)))
		case atSecure:
			secure = value != 0
		}
	}
	return executed, secure
}

// Arguments returns the process' arguments, with a name for the command in any case: iptables goes by it too. A
// program can be started with none, which is one empty argument since Linux 5.18. Then the command is the file that
// was executed.
func Arguments() []string {
	if len(os.Args) > 0 && os.Args[0] != "" {
		return os.Args
	}
	executed, _ := auxiliary()
	argv := []string{programs.Base(executed)}
	if len(os.Args) > 1 {
		argv = append(argv, os.Args[1:]...)
	}
	return argv
}

const exe = "/proc/self/exe"

// locate finds out by which path the wrapper was called, and where its file is. executed is AT_EXECFN, name is argv[0].
//
// AT_EXECFN is the path that was passed to execve(2). It is no use if it resolves to something else: for a script
// that begins with "#!/usr/sbin/iptables-restore" it is the script, and another call may have moved the switch
// since. In the directory of a script anybody may have put a program. For such a script, argv[0] is the path of the
// interpreter; otherwise the caller chose it. A bare argv[0] names no file: programs are never looked for in the
// working directory because of it.
func (p *Process) locate(executed, name string) {
	paths := []string{executed}
	if strings.Contains(name, "/") {
		paths = append(paths, name)
	}
	running, noProc := idOf(exe)
	if noProc == nil {
		leadsHere := func(path string) bool {
			id, err := idOf(path)
			return err == nil && id == running
		}
		p.Called = first(paths, leadsHere)
		if p.Called != "" || !emulated(running) {
			p.file = running
		}
	}
	if p.file == (tree.ID{}) {
		// Without /proc, and under qemu-user, where stat(2) of /proc/self/exe shows the emulator, only the file itself
		// can tell.
		p.Called = first(paths, tree.Tree{}.IsWrapper)
	}
	if p.Called == "" {
		// Most likely another call has moved the switch. What stands beside the executable is the command, or will do.
		p.Called = p.beside(programs.Base(name))
	}
}

// first returns the first path that is good, "" if none is.
func first(paths []string, good func(string) bool) string {
	i := slices.IndexFunc(paths, good)
	if i < 0 {
		return ""
	}
	return paths[i]
}

// beside returns the path of a command in the directory of the running executable, "" if there is none.
func (p *Process) beside(command string) string {
	file, err := p.Path()
	if err != nil || !programs.IsName(command) {
		return ""
	}
	path := programs.Join(programs.Dir(file), command)
	_, err = tree.Tree{}.Lstat(path)
	if err != nil {
		return ""
	}
	return path
}

// idOf identifies the file that a path leads to.
func idOf(path string) (tree.ID, error) {
	st, err := tree.Tree{}.Stat(path)
	return tree.IDOf(st), err
}

// emulated reports that /proc/self/exe, which is this file, is not the one that readlink(2) names, as under qemu-user.
func emulated(running tree.ID) bool {
	path, err := os.Readlink(exe)
	if err != nil {
		return false
	}
	named, err := idOf(path)
	return err == nil && named != running
}

// Path returns the absolute path of the running executable, free of symlinks in its last element. It fails if the
// file has been removed or replaced.
func (p Process) Path() (string, error) {
	if p.Executable != "" {
		return p.Executable, nil
	}
	called := ""
	if p.Called != "" {
		called, _ = tree.Absolute(p.Called)
	}
	linked, _ := os.Readlink(exe)
	for _, path := range []string{called, linked} {
		if path == "" {
			continue
		}
		c, err := tree.Tree{}.Follow(path)
		if err == nil && p.isRunning(tree.Tree{}, c.End, c.Stat) {
			return c.End, nil
		}
	}
	gone := tree.PathError("stat", cmp.Or(p.Called, exe), unix.ENOENT)
	return "", fmt.Errorf("find the wrapper's own file: %w", gone)
}

// isRunning reports whether a file in a tree is the running executable. Where that cannot be known, any wrapper is.
func (p Process) isRunning(t tree.Tree, path string, st unix.Stat_t) bool {
	if p.file == (tree.ID{}) || !t.Own() {
		return t.IsWrapper(path)
	}
	return tree.IDOf(st) == p.file
}

// IsWrapper reports whether a chain ends at a wrapper, perhaps another copy or version than the running one.
func (p Process) IsWrapper(t tree.Tree, c tree.Chain) bool {
	return c.Found() && tree.IsRegular(c.Stat) && (tree.IDOf(c.Stat) == p.file || t.IsWrapper(c.End))
}

// Trusted reports whether the caller's environment and the container's memory may be believed: not if the wrapper runs
// set-user-ID or set-group-ID. File capabilities are fine, because the caller can run both backends' programs itself.
func (p Process) Trusted() bool { return !p.SetID }

// Override returns the backend that the caller's environment asks for, "" if none.
func (p Process) Override() (detect.Mode, error) {
	if !p.Trusted() {
		return "", nil
	}
	mode, err := programs.ParseMode(process.Variable(programs.ModeVariable))
	if err != nil {
		err = fmt.Errorf("environment variable %s: %w", programs.ModeVariable, err)
	}
	return mode, err
}

// dirs are the directories in which programs are looked for, in this order: that of the path by which a command is
// called, that of the running executable, and the standard ones. The first costs a wrapped call no more than it
// must. For a caller that is not trusted, only the standard ones count, which the caller did not choose. A bare name is
// no path, for the working directory may be anybody's.
func (p Process) dirs(t tree.Tree, called string) iter.Seq[string] {
	return func(yield func(string) bool) {
		dirs := programs.StandardDirs()
		if !p.Trusted() {
			slices.Values(dirs)(yield)
			return
		}
		beside := programs.Dir(called)
		if strings.Contains(called, "/") && !yield(beside) {
			return
		}
		if path, err := p.Path(); err == nil && t.Own() {
			dirs = slices.Insert(dirs, 0, programs.Dir(path))
		}
		for i, dir := range dirs {
			known := dir == beside || slices.Contains(dirs[:i], dir)
			if !known && !yield(dir) {
				return
			}
		}
	}
}

// Find returns the program that implements a command in one backend, for a call by a path. The result is relative
// if the path is. Errors are those of Tree.Find. To look for the marker in each program would cost too much: another
// copy of the wrapper is found like a program, and refuses to run itself.
func (p Process) Find(t tree.Tree, called string, mode detect.Mode, name string) (string, error) {
	itself := func(path string, st unix.Stat_t) (bool, error) { return p.isRunning(t, path, st), nil }
	return t.Find(p.dirs(t, called), programs.Files(mode, name), itself)
}

// Both are the programs that implement a command, by backend.
type Both struct {
	Paths  map[detect.Mode]string
	Errors map[detect.Mode]error // those of Find
}

// FindBoth finds the program in both backends.
func (p Process) FindBoth(t tree.Tree, called, name string) Both {
	b := Both{Paths: map[detect.Mode]string{}, Errors: map[detect.Mode]error{}}
	for _, mode := range programs.Modes() {
		b.Paths[mode], b.Errors[mode] = p.Find(t, called, mode, name)
	}
	return b
}

// Missing reports whether there is no program for a backend. One that exists and cannot be executed is not missing.
func (b Both) Missing(mode detect.Mode) bool { return errors.Is(b.Errors[mode], programs.ErrMissing) }

// Only returns the backend that alone has a program, "" if none or both have.
func (b Both) Only() detect.Mode {
	switch {
	case b.Errors[detect.NFT] == nil && b.Missing(detect.Legacy):
		return detect.NFT
	case b.Errors[detect.Legacy] == nil && b.Missing(detect.NFT):
		return detect.Legacy
	}
	return ""
}

// ErrPrivileged means that the caller has fewer privileges than this process, which therefore changes nothing for it.
var ErrPrivileged = errors.New("the caller has fewer privileges than this process")
