// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// runningFile returns the path and the content of the wrapper's executable: the one that /proc/self/exe names or,
// without /proc or in an emulator, the one that argv[0] names by a path.
func runningFile() (path string, content []byte, err error) {
	named, _ := os.Readlink(file.Running)
	for _, path := range [...]string{named, os.Args[0]} {
		if !strings.Contains(path, "/") {
			continue // which file that is depends on the working directory, or on PATH
		}
		content := look.ReadWrapper(path)
		if content != nil {
			return path, content, nil
		}
	}
	return "", nil, remedy.ErrNoFile
}

// writeWrapper writes the running file to the directory, unless it is there already with the right mode and owner: a
// new file would lose its capabilities. It never writes into an existing file: a new one takes its place.
func (w *work) writeWrapper() error {
	st, err := w.Lstat(link.Wrapper)
	isExecutable := st.Mode == unix.S_IFREG|0o755 || st.Mode == unix.S_IFREG|0o555
	isUsable := err == nil && isExecutable && file.Trusted(st)
	if isUsable && bytes.Equal(look.ReadWrapper(w.Join(link.Wrapper)), w.content) {
		return nil
	}
	err = w.WriteProgram(link.Wrapper, w.content)
	if err == nil {
		w.changes = append(w.changes, "wrote "+w.Join(link.Wrapper))
	}
	return err
}
