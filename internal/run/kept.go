// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package run

import "bytes"

// What is kept of what a program prints: of a stream its beginning, of a line its beginning, and so many lines.
const (
	mostOutput = 64 << 10
	mostLine   = 1 << 10
	mostLines  = 64
)

// kept is what is kept of a stream. It has no method of bytes.Buffer: ReadFrom would keep all.
type kept struct {
	prefix string // of lines to be kept, "": none
	first  []byte
	lines  []string
	line   []byte // the last one, which has no end yet
}

// Write keeps of b what there is room for, and always succeeds, so that the program does not fail.
func (k *kept) Write(b []byte) (int, error) {
	size := len(b)
	k.first = append(k.first, b[:min(size, mostOutput-len(k.first))]...)
	for k.prefix != "" {
		line, rest, isWhole := bytes.Cut(b, []byte("\n"))
		k.line = append(k.line, line[:min(len(line), mostLine-len(k.line))]...)
		if !isWhole {
			break
		}
		if bytes.HasPrefix(k.line, []byte(k.prefix)) && len(k.lines) < mostLines {
			k.lines = append(k.lines, string(k.line))
		}
		k.line = k.line[:0]
		b = rest
	}
	return size, nil
}
