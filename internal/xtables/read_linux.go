// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// Limit is the size of the largest table that Read reads, in bytes: some 20,000 rules. It leaves enough memory in a
// container that may use only 16 MiB.
const Limit = 4 << 20

// Read returns the content of a table that Listed returned. Table.Chains has the user-defined chains that keep chooses.
func Read(ipv6 bool, table string, keep func(chain []byte) bool) (Table, error) {
	return read(ipv6, table, func(h header, align int, entries []byte) (Table, error) {
		return parseEntries(ipv6, align, h, entries, keep)
	})
}

type parser func(h header, align int, entries []byte) (Table, error)

func read(ipv6 bool, table string, parse parser) (t Table, err error) {
	domain, level := unix.AF_INET, unix.SOL_IP
	if ipv6 {
		domain, level = unix.AF_INET6, unix.SOL_IPV6
	}
	// A datagram socket needs only CAP_NET_ADMIN. A raw one would need CAP_NET_RAW, too.
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Table{}, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	h, err := readHeader(fd, level, table)
	switch {
	case err == nil && h.size > Limit:
		t.Rules = h.entries
	case err == nil:
		t, err = readEntries(fd, level, table, h, parse)
	}
	if err == unix.EAGAIN { // the table's size has changed
		err = iptables.ErrChanged
	}
	if err != nil {
		return Table{}, fmt.Errorf("read table %q: %w", table, err)
	}
	return t, nil
}

func readHeader(fd, level int, table string) (header, error) {
	question := make([]byte, sizeofGetInfo)
	copy(question, table)
	n, err := getsockopt(fd, level, soGetInfo, question)
	if err != nil {
		return header{}, err
	}
	return parseHeader(question[:n])
}

func readEntries(fd, level int, table string, h header, parse parser) (t Table, err error) {
	for _, align := range alignments() {
		start := entriesOffset(align)
		question := make([]byte, start+int(h.size))
		copy(question, table)
		binary.NativeEndian.PutUint32(question[tableNameSize:], h.size)
		_, err = getsockopt(fd, level, soGetEntries, question)
		if err == nil {
			return parse(h, align, question[start:])
		}
		if err != unix.EINVAL {
			break
		}
	}
	return Table{}, err
}

// getsockopt passes b to the kernel, which reads the question from b and writes the reply into it. It returns the
// length of the reply.
func getsockopt(fd, level, option int, b []byte) (int, error) {
	size := uint32(len(b))
	// x/sys has no getsockopt that passes a question to the kernel.
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	return min(int(size), len(b)), nil
}
