// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// Limit is the size of the largest table that Read reads, in bytes: some 20,000 rules. It leaves enough memory in a
// container that may use only 16 MiB.
const Limit = 4 << 20

// chainsLimit is the same for ReadChains, which no wrapped call uses: some 150,000 rules.
const chainsLimit = 32 << 20

// errTooLarge means that a table is larger than ReadChains reads.
var errTooLarge = errors.New("it is too large to be read")

// Read returns the content of a table that Listed returned. Table.Chains has the user-defined chains that keep chooses.
func Read(ipv6 bool, table string, keep func(chain []byte) bool) (t Table, err error) {
	err = read(ipv6, table, Limit, func(h header, align int, entries []byte) (err error) {
		t, err = parseEntries(ipv6, align, h, entries, keep)
		return err
	}, func(h header) { t.Rules = h.entries })
	if err != nil {
		return Table{}, err
	}
	return t, nil
}

// ReadChains returns a table that Listed returned, with what its rules do. It returns an error for a table that is
// larger than 32 MiB.
func ReadChains(ipv6 bool, table string) (iptables.Table, error) {
	return readChains(ipv6, table, chainsLimit)
}

func readChains(ipv6 bool, table string, limit uint32) (iptables.Table, error) {
	t := iptables.Table{IPv6: ipv6, Name: table}
	tooLarge := false
	err := read(ipv6, table, limit, func(h header, align int, entries []byte) (err error) {
		t.Chains, err = parseChains(ipv6, align, h, entries)
		return err
	}, func(header) { tooLarge = true })
	if err == nil && tooLarge {
		err = fmt.Errorf("read table %q: %w", table, errTooLarge)
	}
	return t, err
}

// read asks for a table and calls parse with its entries, or large if they are more than limit.
func read(
	ipv6 bool, table string, limit uint32, parse func(h header, align int, entries []byte) error, large func(header),
) error {
	domain, level := unix.AF_INET, unix.SOL_IP
	if ipv6 {
		domain, level = unix.AF_INET6, unix.SOL_IPV6
	}
	// A datagram socket needs only CAP_NET_ADMIN. A raw one would need CAP_NET_RAW, too.
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	h, err := readHeader(fd, level, table)
	switch {
	case err == nil && h.size > limit:
		large(h)
	case err == nil:
		err = readEntries(fd, level, table, h, parse)
	}
	if err == unix.EAGAIN { // the table's size has changed
		err = iptables.ErrChanged
	}
	if err != nil {
		return fmt.Errorf("read table %q: %w", table, err)
	}
	return nil
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

func readEntries(fd, level int, table string, h header, parse func(header, int, []byte) error) (err error) {
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
	return err
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
