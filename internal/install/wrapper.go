// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// mark is how install recognizes its own binary. This reference is what keeps it in the file.
const mark = "this executable is iptables-wrapper, see github.com/iptables-wrappers"

var errNotFound = errors.New("the running file cannot be found: /proc is not mounted, and the wrapper was not called " +
	"by a path")

// runningFile returns the path and the contents of the wrapper's executable: the one that /proc/self/exe names, or,
// without /proc, the one that argv0 names by a path.
func runningFile(argv0 string) (path string, content []byte, err error) {
	named, _ := os.Readlink("/proc/self/exe")
	if !strings.Contains(argv0, "/") {
		argv0 = ""
	}
	for _, candidate := range []string{named, argv0} {
		content, err := os.ReadFile(candidate)
		if err == nil && isWrapper(content) {
			return candidate, content, nil
		}
	}
	return "", nil, errNotFound
}

func isWrapper(content []byte) bool {
	return bytes.HasPrefix(content, []byte("\x7fELF")) && bytes.Contains(content, []byte(mark))
}

// overwritten returns the path of the program of iptables that the wrapper has overwritten, "" if there is none: on
// Debian, "cp" over /usr/sbin/iptables follows the links to iptables' own program.
func (w work) overwritten() string {
	for _, b := range detect.Backends() {
		path := w.program(b)
		content, err := os.ReadFile(path)
		if err == nil && isWrapper(content) {
			return path
		}
	}
	return ""
}

// writeWrapper writes the running file to the directory, unless it is there already, with the right mode and owner. It
// never changes a file: a new one takes its place.
func (w work) writeWrapper() error {
	const (
		executable = 0o555
		setID      = 0o6000
	)
	st, err := w.Lstat(link.Wrapper)
	isPlain := st.Mode&unix.S_IFMT == unix.S_IFREG
	if err == nil && isPlain && file.Trusted(st) && st.Mode&(executable|setID) == executable {
		content, err := os.ReadFile(w.Join(link.Wrapper))
		if err == nil && bytes.Equal(content, w.content) {
			return nil
		}
	}
	err = w.WriteProgram(link.Wrapper, w.content)
	if err == nil {
		w.done.did("wrote %s", w.Join(link.Wrapper))
	}
	return err
}

// absolute makes a path absolute. A relative path starts at the working directory.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	working, err := os.Getwd()
	return working + "/" + path, err // not cleaned: ".." means something else behind a symlink
}
