// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package programs knows the commands of iptables: their names, the files that implement them in each backend, and
// what a command line is about to do. It starts nothing and changes nothing.
package programs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Names returns the six commands that the wrapper stands in for.
func Names() []string {
	return []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}
}

// Modes returns the two backends.
func Modes() []detect.Mode { return []detect.Mode{detect.NFT, detect.Legacy} }

// StandardDirs returns the directories in which distributions install iptables.
func StandardDirs() []string { return []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"} }

// IsName reports whether a file name is one of the six commands.
func IsName(name string) bool { return slices.Contains(Names(), name) }

// MultiCall is the file name of a backend's multi-call program, which serves all six commands and goes by argv[0].
func MultiCall(m detect.Mode) string { return "xtables-" + string(m) + "-multi" }

// Single is the file name of the program or link that serves one command in one backend: "iptables-nft-restore".
func Single(m detect.Mode, name string) string {
	return strings.Replace(name, "tables", "tables-"+string(m), 1)
}

// Files returns the file names of the programs that serve one command in one backend. The multi-call program comes
// first: one link to it can serve all six commands.
func Files(m detect.Mode, name string) []string { return []string{MultiCall(m), Single(m, name)} }

// IsMode reports whether a word is one of the two backends.
func IsMode(m detect.Mode) bool { return slices.Contains(Modes(), m) }

// ModeOf returns the backend that a file of this name implements, "" if it is not one of iptables' programs.
func ModeOf(file string) detect.Mode {
	for _, mode := range Modes() {
		single := func(name string) bool { return file == Single(mode, name) }
		if file == MultiCall(mode) || slices.ContainsFunc(Names(), single) {
			return mode
		}
	}
	return ""
}

// IsProgram reports whether a file of this name is one of iptables' own programs, of either backend or from before 1.8.
func IsProgram(file string) bool { return ModeOf(file) != "" || file == "xtables-multi" }

// Dir returns a path without its last element. Unlike filepath.Dir it leaves ".." alone, which means something else
// once a symlink before it is followed.
func Dir(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "."
	}
	return path[:max(i, 1)]
}

// Base returns the last element of a path, "" if it ends in a slash.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Join returns the path of a file in a directory.
func Join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// The wrapper's environment variables.
const (
	ModeVariable  = "IPTABLES_WRAPPER_MODE"  // overrides detection
	DebugVariable = "IPTABLES_WRAPPER_DEBUG" // a call says in one line what it does
)

// ParseMode reads the value of IPTABLES_WRAPPER_MODE and of --mode. "" stands for auto.
func ParseMode(s string) (detect.Mode, error) {
	mode := detect.Mode(s)
	switch {
	case s == "", s == "auto":
		return "", nil
	case IsMode(mode):
		return mode, nil
	default:
		return "", fmt.Errorf("%q is not one of auto, nft, legacy", s)
	}
}

var (
	// ErrMissing means that there is no program for the command and backend.
	ErrMissing = errors.New("no such program")
	// ErrRecursion means that the program is a wrapper.
	ErrRecursion = errors.New("it is the wrapper itself")
)

// Marker returns the bytes that every version of the wrapper has in its executable. They are joined at run time, so
// that a program that only links this package does not contain them: the one literal is in internal/call.
func Marker() string {
	return strings.Join([]string{"iptables-wrapper marker 7d3f6c0e", "5a51", "4f3b", "9a1e", "1f6d2c8b0e47"}, "-")
}

// HasMarker reports whether an ELF executable is a wrapper, of whatever version and under whatever name. It reads
// 64 KiB at a time, because a wrapped call may end up here, and 64 MiB in all: no wrapper is larger. What cannot be
// read is none.
func HasMarker(r io.ReaderAt) bool {
	marker := []byte(Marker())
	buf := make([]byte, 64<<10)
	for at := 0; at < 64<<20; at += len(buf) - len(marker) { // it may begin in one block and end in the next
		n, err := r.ReadAt(buf, int64(at))
		block := buf[:n]
		switch {
		case at == 0 && !bytes.HasPrefix(block, []byte("\x7fELF")): // a script may contain anything, the marker too
			return false
		case bytes.Contains(block, marker):
			return true
		case err != nil:
			return false
		}
	}
	return false
}
