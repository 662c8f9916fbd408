// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// mark is in the wrapper's file, because it is used here.
const mark = "this executable is iptables-wrapper, see github.com/iptables-wrappers"

var errNotFound = errors.New("neither /proc/self/exe nor the path by which this process was started is the wrapper")

// runningFile returns what the running file has, also if it was removed. Without /proc, and under an emulator that
// passes its own file off as /proc/self/exe, the path by which the process was started leads to it. That may be a
// script that begins with "#!", so the file must be an ELF file with our mark.
func runningFile() ([]byte, error) {
	path, _ := layout.Running()
	for _, candidate := range []string{"/proc/self/exe", path} {
		content, err := os.ReadFile(candidate)
		if err == nil && isWrapper(content) {
			return content, nil
		}
	}
	return nil, errNotFound
}

func isWrapper(content []byte) bool {
	return bytes.HasPrefix(content, []byte("\x7fELF")) && bytes.Contains(content, []byte(mark))
}

// overwritten returns the path of a program of iptables in whose place the wrapper is, "" if there is none: "cp" over
// /usr/sbin/iptables follows the links of Debian to it.
func (w work) overwritten() string {
	for _, mode := range evidence.Modes() {
		path := w.program(mode)
		content, err := os.ReadFile(path)
		if err == nil && isWrapper(content) {
			return path
		}
	}
	return ""
}

// writeWrapper writes the running file to its place in the directory, unless it is there as it should be. What is there
// is never changed: a new file takes its place.
func (w work) writeWrapper() error {
	const (
		executable = 0o555
		setID      = 0o6000
	)
	content, st, err := w.Read(layout.Wrapper)
	sound := err == nil && !exposed(st) && st.Mode&executable == executable && st.Mode&setID == 0
	if sound && bytes.Equal(content, w.content) {
		return nil
	}
	err = w.WriteProgram(layout.Wrapper, w.content)
	if err == nil {
		w.done.did("wrote %s", w.Join(layout.Wrapper))
	}
	return err
}
