// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limit is the size of the largest table that is read, in bytes. A table of that size has some 20,000 rules. It leaves
// enough memory in a container that may use only 16 MiB.
const Limit = 4 << 20

// ErrChanged means that a table was replaced while it was read.
var ErrChanged = errors.New("the table changed while it was read")

// Read returns the content of a table, which must be one that Listed returned.
func Read(ipv6 bool, table string) (Table, error) {
	s, err := open(ipv6)
	if err != nil {
		return Table{}, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(s.fd)
	t, err := s.read(table)
	if err == errBadTable || err == unix.EAGAIN { // EAGAIN: the table's size has changed
		err = ErrChanged
	}
	if err != nil {
		return Table{}, fmt.Errorf("read table %q: %w", table, err)
	}
	return t, nil
}

// socket is a socket over which a family's tables are read.
type socket struct {
	fd, level int
	ipv6      bool
}

// open opens a datagram socket, which needs only CAP_NET_ADMIN; a raw one would need CAP_NET_RAW, too.
func open(ipv6 bool) (socket, error) {
	s := socket{level: unix.SOL_IP, ipv6: ipv6}
	domain := unix.AF_INET
	if ipv6 {
		s.level = unix.SOL_IPV6
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	s.fd = fd
	return s, err
}

func (s socket) read(table string) (Table, error) {
	question := make([]byte, sizeofGetInfo)
	copy(question, table)
	n, err := s.getsockopt(soGetInfo, question)
	if err != nil {
		return Table{}, err
	}
	h, err := parseHeader(question[:n])
	if err != nil {
		return Table{}, err
	}
	if h.size > Limit {
		return Table{Rules: h.entries}, nil
	}
	t, err := s.entries(table, h, hostAlignment())
	if err == unix.EINVAL && hostAlignment() == 4 {
		// A 64-bit kernel without CONFIG_NETFILTER_XTABLES_COMPAT knows only its own layout. Debian 13 has one.
		t, err = s.entries(table, h, 8)
	}
	return t, err
}

// entries asks for the entries of a table, in the layout with an alignment.
func (s socket) entries(table string, h header, align int) (Table, error) {
	start := entriesOffset(align)
	question := make([]byte, start+int(h.size))
	copy(question, table)
	binary.NativeEndian.PutUint32(question[tableNameSize:], h.size)
	_, err := s.getsockopt(soGetEntries, question)
	if err != nil {
		return Table{}, err
	}
	return parseEntries(s.ipv6, align, h, question[start:])
}

// getsockopt passes b to the kernel, which reads the question from b and writes the reply into it. It returns the
// length of the reply.
func (s socket) getsockopt(option int, b []byte) (int, error) {
	size := uint32(len(b))
	// x/sys has no getsockopt that passes a question to the kernel.
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), uintptr(s.level), uintptr(option),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	return min(int(size), len(b)), nil
}
