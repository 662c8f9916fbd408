// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wrapper is this program as it was started.
type Wrapper struct {
	// called is the path that the caller gave to execve(2). It may be relative, and leads through links.
	called string

	// Secure is set when this process has more rights than its caller, by a set-user-ID bit or file capabilities.
	// The caller's words must then not be trusted: neither environment variables nor the path.
	Secure bool

	// file is the running executable, zero where /proc does not tell. It stays the same when the names are moved.
	file fileID

	// inRoot is set in a root file system that was entered from outside. binary is what the running executable contains,
	// which cannot be read from there.
	inRoot bool
	binary []byte
}

// fileID tells files apart, and links too.
type fileID struct{ dev, ino uint64 }

func id(stat unix.Stat_t) fileID { return fileID{uint64(stat.Dev), stat.Ino} }

// Entries of the auxiliary vector, from linux/auxvec.h. golang.org/x/sys/unix has none of them.
const (
	atSecure = 23 // AT_SECURE
	atExecfn = 31 // AT_EXECFN
)

// Started reads how this process was started from the auxiliary vector, see getauxval(3): that needs no /proc.
func Started() Wrapper {
	var w Wrapper
	if len(os.Args) > 0 { // before 5.18 the kernel lets a program be started without any
		w.called = os.Args[0]
	}
	var file unix.Stat_t
	if unix.Stat("/proc/self/exe", &file) == nil {
		w.file = id(file)
	}
	auxv, err := unix.Auxv()
	if err != nil {
		return w // a runtime that does not keep it: argv[0] is as good as it gets
	}
	for _, entry := range auxv {
		switch value := entry[1]; entry[0] {
		case atExecfn:
			// A pointer into this process' own stack, where the kernel put the string.
			w.called = unix.BytePtrToString(*(**byte)(unsafe.Pointer(&value)))
		case atSecure:
			w.Secure = value != 0
		}
	}
	return w
}

// ownPath returns where the running executable is, without links. It fails if the file has been replaced or removed.
func (w Wrapper) ownPath() (string, error) {
	// The kernel writes " (deleted)" behind the path of a file that is gone.
	if path, err := os.Readlink("/proc/self/exe"); err == nil && w.isAt(path) {
		return path, nil
	}
	path, err := absolute(w.called)
	if err != nil {
		return "", err
	}
	c, err := follow(path)
	if err == nil && !w.runs(c.end, c.stat) {
		err = &os.PathError{Op: "find the wrapper's file", Path: path, Err: unix.ENOENT}
	}
	return c.end, err
}

func (w Wrapper) isAt(path string) bool {
	var stat unix.Stat_t
	return unix.Stat(path, &stat) == nil && w.runs(path, stat)
}

// Dir returns the directory of the six names, if none is given: that of the running executable if one of them, or
// iptables-nft, is there; else the first of the standard ones of which that holds; else that of the running executable.
func (w Wrapper) Dir() (string, error) {
	var own string
	var err error
	if !w.inRoot {
		if own, err = w.ownPath(); err != nil {
			return "", err
		}
		own = dir(own)
		if serves(own) {
			return own, nil
		}
	}
	for _, d := range standardDirs {
		if serves(d) {
			return d, nil
		}
	}
	if w.inRoot {
		return standardDirs[0], nil
	}
	return own, nil
}

// serves says whether a directory has one of the six names, or iptables-nft.
func serves(d string) bool {
	return slices.ContainsFunc(append(candidates("nft", "iptables"), names[:]...), func(name string) bool {
		var stat unix.Stat_t
		return unix.Lstat(in(d, name), &stat) == nil
	})
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
	return in(cwd, path), nil
}

// marker is found in the file of every wrapper, of any version, and in no other program.
const marker = "iptables-wrapper marker 7d3f6c0e-5a51-4f3b-9a1e-1f6d2c8b0e47"

// maxWrapper is more than any wrapper's size, in bytes.
const maxWrapper = 64 << 20

// isWrapper says whether a file is a wrapper, perhaps another copy or version.
func isWrapper(path string) bool {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size > maxWrapper {
		return false
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// Piece by piece, each behind the end of the one before: a wrapped call may come here, and shall stay small.
	buf := make([]byte, 64<<10)
	for start := 0; ; {
		n, err := unix.Read(fd, buf[start:])
		if n <= 0 || err != nil {
			return false
		}
		if bytes.Contains(buf[:start+n], []byte(marker)) {
			return true
		}
		start = copy(buf, buf[max(start+n-len(marker)+1, 0):start+n])
	}
}

// runs says whether a file, already looked at, is the one that runs in this process. Without /proc, being a wrapper
// must do: by the time we look, the path that was called may lead elsewhere.
func (w Wrapper) runs(path string, file unix.Stat_t) bool {
	if w.file == (fileID{}) {
		return isWrapper(path)
	}
	return w.file == id(file)
}

// chain is what a name leads to.
type chain struct {
	// link is the last link on the way that bears the name itself and is where such names are: the one to move. That
	// may be the name, or its namesake in /etc/alternatives, but never a link that is there for something else, such
	// as the wrapper's own name or a program's. It is empty if the name is no link.
	link    string
	content string   // of that link
	way     []string // the links, from the name on, and the file at the end
	end     string   // the file at the end
	stat    unix.Stat_t
}

// backend says whether the way goes through one of iptables' programs, or ends there.
func (c chain) backend() bool {
	return slices.ContainsFunc(c.way, func(path string) bool { return isBackend(base(path)) })
}

// through says whether the way goes through a link, by whatever path.
func (c chain) through(link string) bool {
	return slices.ContainsFunc(c.way, func(path string) bool {
		var a, b unix.Stat_t
		return unix.Lstat(path, &a) == nil && unix.Lstat(link, &b) == nil && id(a) == id(b)
	})
}

// follow walks from link to link as the kernel would. Where the chain leads nowhere, it says so with an error that
// wraps ENOENT or ELOOP.
func follow(path string) (chain, error) {
	c := chain{end: path}
	for range 40 { // MAXSYMLINKS
		if err := unix.Lstat(c.end, &c.stat); err != nil {
			return c, &os.PathError{Op: "lstat", Path: c.end, Err: err}
		}
		c.way = append(c.way, c.end)
		if c.stat.Mode&unix.S_IFMT != unix.S_IFLNK {
			return c, nil
		}
		target, err := os.Readlink(c.end)
		if err != nil {
			return c, err
		}
		if base(c.end) == base(path) && isForNames(dir(c.end), dir(path)) {
			c.link, c.content = c.end, target
		}
		if target[0] != '/' {
			target = in(dir(c.end), target)
		}
		c.end = target
	}
	return c, &os.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
}

// alternativesDir has a link for each name under alternatives.
const alternativesDir = "/etc/alternatives"

// isForNames says whether a directory on the way from one has names, and not programs.
func isForNames(d, first string) bool {
	if d == first || d == alternativesDir || slices.Contains(standardDirs[:], d) {
		return true
	}
	return sameFile(d, first) || sameFile(d, alternativesDir) ||
		slices.ContainsFunc(standardDirs[:], func(standard string) bool { return sameFile(d, standard) })
}

func isNotThere(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}
