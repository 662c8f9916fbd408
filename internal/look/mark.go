// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// mark is how the wrapper recognizes its own file, of any version. This reference is what keeps it in the file. A name
// proves nothing: other programs are called iptables-wrapper, too.
const mark = "this executable is iptables-wrapper, see github.com/iptables-wrappers"

// ReadWrapper returns the content of the wrapper's file, nil if another file has that path.
func ReadWrapper(path string) []byte {
	const limit = 64 << 20 // the wrapper has 5 MB; another user's sparse file may have more than the memory
	content, err := file.Read(path, limit)
	if err != nil || !bytes.HasPrefix(content, []byte("\x7fELF")) || !bytes.Contains(content, []byte(mark)) {
		return nil
	}
	return content
}

// IsWrapper reports whether a path leads to the wrapper, this copy or another one.
func IsWrapper(path string) bool {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	return file.IsAt(file.Running, st) || ReadWrapper(path) != nil
}
