// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"io"
	"strings"
)

// Marker returns the bytes that every version of the wrapper has in its executable. They are joined at run time, so that
// a program that only links this package does not contain them: the one literal is in internal/call.
func Marker() string {
	return strings.Join([]string{"iptables-wrapper marker 7d3f6c0e", "5a51", "4f3b", "9a1e", "1f6d2c8b0e47"}, "-")
}

// maxWrapper is larger than any wrapper, in bytes.
const maxWrapper = 64 << 20

// HasMarker reports whether an executable of some size is a wrapper, of whatever version and under whatever name. It reads
// 64 KiB at a time, because a wrapped call may end up here. What cannot be read is not taken for a wrapper.
func HasMarker(r io.Reader, size int64) bool {
	marker := []byte(Marker())
	buf := make([]byte, min(size+1, 64<<10))
	start := 0
	for read := 0; read < maxWrapper; {
		n, err := r.Read(buf[start:])
		if bytes.Contains(buf[:start+n], marker) {
			return true
		}
		if n <= 0 || err != nil {
			return false
		}
		read += n
		// The marker may begin in this block and end in the next.
		start = copy(buf, buf[max(start+n-len(marker)+1, 0):start+n])
	}
	return false
}
