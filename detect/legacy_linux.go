// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// legacyProbe asks x_tables about one family. A table is asked about only if it is listed: the same question about one
// that is not would create it.
type legacyProbe struct {
	family        Family
	names         string   // the file that lists its tables
	domain, level int      // for socket(2) and getsockopt(2)
	proc          string   // where /proc is mounted
	largest       uint32   // table that is read, in bytes
	fd            int      // -1: not open
	permitted     Answer   // No while every answer was EPERM
	tables        []string // those of the five that exist
	err           error    // why they are not known

	searched map[string][]Program // programs of the host, by the tables that were read for their rules
}

func newLegacyProbe(f Family, most effort) legacyProbe {
	p := legacyProbe{
		family: f, names: "ip_tables_names", domain: unix.AF_INET, level: unix.SOL_IP,
		largest: most.table, proc: "/proc", fd: -1,
	}
	if f == IPv6 {
		p.names, p.domain, p.level = "ip6_tables_names", unix.AF_INET6, unix.SOL_IPV6
	}
	return p
}

func (p *legacyProbe) close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
	}
}

// net is a file about the network namespace of this thread. /proc/net would be that of the process' first thread.
func (p *legacyProbe) net(name string) string { return p.proc + "/thread-self/net/" + name }

// list reads which tables exist in the namespace, and returns whether the kernel has x_tables of this family. It has
// kept the list since ip_tables or ip6_tables was loaded, with no line until the first table is created.
func (p *legacyProbe) list() (supported Answer) {
	var buf [128]byte // all five take 31
	n, err := readFile(p.net(p.names), buf[:])
	p.err = nil
	p.tables = slices.DeleteFunc(strings.Fields(string(buf[:n])), func(name string) bool {
		return !slices.Contains(tableNames[:], name)
	})
	if err == nil {
		if n > 0 && p.withoutIPv6() {
			// Before 5.15, loading ip6_tables makes tables, even if nobody can then speak IPv6 to fill them.
			p.tables = nil
			return No
		}
		return Yes
	}
	switch loaded := p.loaded(); {
	case loaded != No:
		p.err = fmt.Errorf("list the legacy tables: %w", err)
		return loaded
	case modulesCanLoad(p.proc):
		return Unknown // no x_tables now, hence no table
	default:
		return No
	}
}

// loaded finds out whether the kernel has x_tables now, by asking for a header in a buffer that is too small. Without
// x_tables, nothing handles the question, whatever the caller's capabilities; with it, the kernel checks these, and the
// size before the table.
func (p *legacyProbe) loaded() Answer {
	if p.withoutIPv6() {
		return No
	}
	switch _, err := p.getsockopt(soGetInfo, make([]byte, 1)); err {
	case unix.ENOPROTOOPT: // from getsockopt(2): what socket(2) returns is wrapped
		return No
	case unix.EPERM, unix.EINVAL:
		return Yes
	default:
		return Unknown
	}
}

// withoutIPv6 reports that this is the probe of a family that the kernel cannot speak (ipv6.disable=1, or IPv6 is not
// in it). There is no socket to ask then, and asking for one could load it.
func (p *legacyProbe) withoutIPv6() bool {
	return p.family == IPv6 && errors.Is(stat(p.net("if_inet6")), unix.ENOENT) && stat(p.net("dev")) == nil
}

// kubelet looks for both of kubelet's chains in one reading of mangle, in a list of tables that was just read. The
// kernel hands out a table as a whole, with user-defined chains behind the rules of the built-in ones. So a large one
// is read only if its header has room for such a chain, and not beyond a limit.
func (p *legacyProbe) kubelet() (hint, canary Answer, err error) {
	if p.err != nil {
		return Unknown, Unknown, p.err
	}
	if !slices.Contains(p.tables, mangle) {
		return No, No, nil
	}
	info, err := p.info(mangle)
	if err != nil {
		return Unknown, Unknown, fmt.Errorf("read the header of legacy table %q: %w", mangle, err)
	}
	if !info.mayHaveUserChains(p.family) {
		return No, No, nil
	}
	t, err := p.entries(mangle)
	if err != nil {
		return Unknown, Unknown, err
	}
	has := func(chain string) Answer {
		return answer(slices.ContainsFunc(t.chains, func(name []byte) bool { return string(name) == chain }))
	}
	return has(HintChain), has(CanaryChain), nil
}

func (p *legacyProbe) info(table string) (tableInfo, error) {
	buf := make([]byte, sizeofGetInfo)
	copy(buf, table)
	n, err := p.getsockopt(soGetInfo, buf)
	if err != nil {
		return tableInfo{}, err
	}
	return parseInfo(buf[:n])
}

// entries reads a table that is listed. If it is replaced after its header was read, by one of another size or one that
// the header does not fit, both are read again.
func (p *legacyProbe) entries(table string) (t tableEntries, err error) {
	err = retryChanged(func() error {
		info, err := p.info(table)
		if err != nil {
			return err
		}
		if info.size > p.largest {
			return fmt.Errorf("%w: %d MiB, and the limit is %d", errTooMuch, info.size>>20, p.largest>>20)
		}
		t, err = p.entriesAligned(table, info, hostAlignment())
		if errors.Is(err, unix.EINVAL) && hostAlignment() == 4 {
			// A 64-bit kernel without CONFIG_NETFILTER_XTABLES_COMPAT: it knows its own layout only.
			t, err = p.entriesAligned(table, info, 8)
		}
		return err
	})
	if err != nil {
		return tableEntries{}, fmt.Errorf("read legacy table %q: %w", table, err)
	}
	return t, nil
}

func (p *legacyProbe) entriesAligned(table string, info tableInfo, align int) (tableEntries, error) {
	start := entriesOffset(align)
	buf := make([]byte, start+int(info.size))
	copy(buf, table)
	binary.NativeEndian.PutUint32(buf[tableNameSize:], info.size)
	if _, err := p.getsockopt(soGetEntries, buf); err != nil {
		return tableEntries{}, err
	}
	return parseEntries(p.family, align, info, buf[start:])
}

// getsockopt hands b to the kernel, which reads the question from it and writes the answer into it, and returns how
// much of it is answer.
func (p *legacyProbe) getsockopt(option int, b []byte) (int, error) {
	if p.fd < 0 {
		// A datagram socket needs CAP_NET_ADMIN alone; a raw one would need CAP_NET_RAW too.
		fd, err := unix.Socket(p.domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, fmt.Errorf("open a socket: %w", err)
		}
		p.fd = fd
	}
	size := uint32(len(b))
	// x/sys has no getsockopt that also passes something in.
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(p.fd), uintptr(p.level), uintptr(option),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno == unix.EPERM { // ENOPROTOOPT comes before the kernel asks for the capability
		p.permitted = max(p.permitted, No)
	}
	if errno != 0 {
		return 0, errno
	}
	p.permitted = Yes
	return min(int(size), len(b)), nil
}

func stat(path string) error {
	var st unix.Stat_t
	return unix.Stat(path, &st)
}

// modulesCanLoad is false only where the kernel says for certain that nothing will be added to it.
func modulesCanLoad(proc string) bool {
	var disabled [1]byte
	if _, err := readFile(proc+"/sys/kernel/modules_disabled", disabled[:]); errors.Is(err, unix.ENOENT) {
		// Built without modules; but where there is no /proc, the file is missing too.
		return stat(proc+"/sys/kernel/osrelease") != nil
	}
	return disabled[0] != '1'
}

// readFile reads a file of /proc that fits, without the runtime's poller, which would cost five more system calls.
func readFile(path string, buf []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", path, err)
	}
	return n, nil
}
