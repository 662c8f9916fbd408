//go:build linux

// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// legacyProbe asks x_tables about one family. A table is asked about only if it is listed: the same question about one
// that is not would create it.
type legacyProbe struct {
	family Family
	fd     int // -1: not open
	read   bool
	names  []byte // the tables that exist, one a line
	none   error  // why names could not be read
}

func newLegacyProbe(f Family) legacyProbe { return legacyProbe{family: f, fd: -1} }

func (p *legacyProbe) close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
	}
}

// mangleChains looks for both of kubelet's chains in one reading of mangle.
func (p *legacyProbe) mangleChains(e *Evidence) {
	listed, err := p.list(e)
	if err != nil {
		e.Hint, e.Canary = Unknown, Unknown
		return
	}
	e.Hint, e.Canary = No, No
	if !listed(mangle) {
		return
	}
	t, err := p.entries(mangle)
	if err != nil {
		e.Hint, e.Canary = Unknown, Unknown
		e.blame(err)
		return
	}
	for _, name := range t.chains {
		switch string(name) {
		case HintChain:
			e.Hint = Yes
		case CanaryChain:
			e.Canary = Yes
		}
	}
}

// boundRules asks for the headers of the tables: how many rules there can be, and whether there is one at all.
func (p *legacyProbe) boundRules(e *Evidence) {
	p.sum(e, func(table string) (Count, error) {
		info, err := p.info(table)
		if err != nil {
			err = fmt.Errorf("read the header of legacy table %q: %w", table, err)
		}
		return info.bound(), err
	})
}

// countRules reads every entry of the tables.
func (p *legacyProbe) countRules(e *Evidence) {
	p.sum(e, func(table string) (Count, error) {
		t, err := p.entries(table)
		return exactly(t.rules), err
	})
}

// countTables is countRules, and lists the tables that exist.
func (p *legacyProbe) countTables(e *Evidence) {
	p.sum(e, func(table string) (Count, error) {
		t, err := p.entries(table)
		count := exactly(t.rules)
		if err != nil {
			count = Count{0, Unbounded}
		}
		var chains []string
		for _, name := range t.chains {
			chains = append(chains, string(name))
		}
		e.Tables = append(e.Tables, Table{table, count, chains})
		return count, err
	})
}

// sum counts the tables that exist.
func (p *legacyProbe) sum(e *Evidence, count func(table string) (Count, error)) {
	listed, err := p.list(e)
	if err != nil {
		return // Rules stays without bounds
	}
	sum := exactly(0)
	for _, table := range tableNames {
		if !listed(table) {
			continue
		}
		rules, err := count(table)
		if err != nil {
			e.blame(err)
			rules = Count{0, Unbounded}
		}
		sum = sum.plus(rules)
	}
	e.Rules = sum
}

// list tells which tables exist in the namespace of this thread, and sets Supported.
func (p *legacyProbe) list(e *Evidence) (listed func(table string) bool, err error) {
	if !p.read {
		p.read = true
		p.names, p.none = p.readNames()
		switch {
		case p.none == nil && len(p.names) > 0 && p.withoutIPv6():
			// Before 5.15, loading ip6_tables makes tables, even if nobody can then speak IPv6 to fill them.
			p.names, e.Supported = nil, No
		case p.none == nil:
			e.Supported = Yes
		default:
			if e.Supported = p.registered(); e.Supported != No {
				e.blame(p.none)
				break
			}
			p.none = nil // no x_tables, no table: that needs no list
			if modulesCanLoad() {
				e.Supported = Unknown
			}
		}
	}
	return func(table string) bool { return parseNames(p.names, table) }, p.none
}

// The files of a network namespace. /proc/net would be those of the process' first thread.
const procNet = "/proc/thread-self/net/"

// readNames reads the list that x_tables keeps for each namespace. It is there as soon as the kernel has ip_tables or
// ip6_tables, with no line until the first table is made.
func (p *legacyProbe) readNames() ([]byte, error) {
	path := procNet + "ip_tables_names"
	if p.family == IPv6 {
		path = procNet + "ip6_tables_names"
	}
	names, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("list the legacy tables: %w", err)
	}
	return names, nil
}

// registered says whether the kernel has x_tables of this family now, where the list of tables could not be read. It
// loads nothing: the target that is asked for is the one that is part of x_tables itself. Without x_tables nobody
// answers at this option, whatever the caller may do.
func (p *legacyProbe) registered() Answer {
	option := soGetRevisionTarget4
	if p.family == IPv6 {
		option = soGetRevisionTarget6
		if errors.Is(p.none, unix.ENOENT) && p.withoutIPv6() {
			return No
		}
	}
	if err := p.open(); err != nil {
		return Unknown
	}
	revision := make([]byte, sizeofGetRevision)
	copy(revision, "ERROR")
	switch _, err := p.getsockopt(option, revision); {
	case errors.Is(err, unix.ENOPROTOOPT):
		return No
	case err == nil, errors.Is(err, unix.EPERM):
		return Yes
	default:
		return Unknown
	}
}

// withoutIPv6 says whether this is the probe of a family that the kernel cannot speak (ipv6.disable=1, or IPv6 is not in
// it). There is no socket to ask then, and asking for one could load it.
func (p *legacyProbe) withoutIPv6() bool {
	return p.family == IPv6 && missing(procNet+"if_inet6") && exists(procNet+"dev")
}

func exists(path string) bool {
	var stat unix.Stat_t
	return unix.Stat(path, &stat) == nil
}

// missing is not the opposite of exists: that a file cannot be looked at proves nothing.
func missing(path string) bool {
	var stat unix.Stat_t
	return errors.Is(unix.Stat(path, &stat), unix.ENOENT)
}

// modulesCanLoad is false only where the kernel says for certain that nothing will be added to it.
func modulesCanLoad() bool {
	disabled, err := readFile("/proc/sys/kernel/modules_disabled")
	switch {
	case err == nil:
		return len(disabled) == 0 || disabled[0] != '1'
	case errors.Is(err, unix.ENOENT):
		// Built without modules; but where there is no /proc, the file is missing too.
		return !exists("/proc/sys/kernel/osrelease")
	default:
		return true
	}
}

// info reads the header of a table that is listed.
func (p *legacyProbe) info(table string) (tableInfo, error) {
	buf := make([]byte, sizeofGetInfo)
	copy(buf, table)
	n, err := p.getsockopt(soGetInfo, buf)
	if err != nil {
		return tableInfo{}, err
	}
	return parseInfo(buf[:n])
}

// entries reads a table that is listed. The table may be replaced between the two questions: by one of another size,
// which the kernel refuses with EAGAIN, or by one of the same size, which the header does not fit.
func (p *legacyProbe) entries(table string) (tableEntries, error) {
	var err error
	for range attempts {
		var t tableEntries
		if t, err = p.entriesOnce(table); err == nil {
			return t, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, errBadTable) {
			break
		}
	}
	return tableEntries{}, fmt.Errorf("read legacy table %q: %w", table, err)
}

func (p *legacyProbe) entriesOnce(table string) (tableEntries, error) {
	info, err := p.info(table)
	if err != nil {
		return tableEntries{}, err
	}
	t, err := p.entriesAligned(table, info, native())
	if errors.Is(err, unix.EINVAL) && native() == 4 {
		// A 64-bit kernel without CONFIG_NETFILTER_XTABLES_COMPAT: it knows its own layout only.
		t, err = p.entriesAligned(table, info, 8)
	}
	return t, err
}

func (p *legacyProbe) entriesAligned(table string, info tableInfo, align alignment) (tableEntries, error) {
	start := entriesOffset(align)
	buf := make([]byte, start+int(info.size))
	copy(buf, table)
	binary.NativeEndian.PutUint32(buf[tableNameSize:], info.size)
	n, err := p.getsockopt(soGetEntries, buf)
	if err != nil {
		return tableEntries{}, err
	}
	if n != len(buf) {
		return tableEntries{}, errShortTable
	}
	return parseEntries(p.family, align, info, buf[start:])
}

// open makes a socket of the family. A datagram socket needs CAP_NET_ADMIN alone; a raw one would need CAP_NET_RAW too.
func (p *legacyProbe) open() error {
	if p.fd >= 0 {
		return nil
	}
	domain := unix.AF_INET
	if p.family == IPv6 {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	p.fd = fd
	return nil
}

// getsockopt hands b to the kernel, which reads the question from it and writes the answer into it, and returns how
// much of it is answer.
func (p *legacyProbe) getsockopt(option int, b []byte) (int, error) {
	if err := p.open(); err != nil {
		return 0, err
	}
	level := unix.SOL_IP
	if p.family == IPv6 {
		level = unix.SOL_IPV6
	}
	size := uint32(len(b))
	// x/sys has no getsockopt that also passes something in.
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(p.fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	return min(int(size), len(b)), nil
}

// readFile reads a short file of /proc without the runtime's poller, which would cost five more system calls.
func readFile(path string) ([]byte, error) {
	var fd int
	if err := uninterrupted(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	}); err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	content := make([]byte, 0, 512)
	for {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		var n int
		if err := uninterrupted(func() (err error) {
			n, err = unix.Read(fd, content[len(content):cap(content)])
			return err
		}); err != nil {
			return nil, fmt.Errorf("read %q: %w", path, err)
		}
		if n == 0 {
			return content, nil
		}
		content = content[:len(content)+n]
	}
}
