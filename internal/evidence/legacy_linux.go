// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// largestTable of legacy that is read, in bytes. It has some 20,000 rules, and leaves memory for the rest where a
// container may have no more than 16 MiB.
const largestTable = 4 << 20

var errTooMuch = errors.New("too much to read")

// legacyProbe asks x_tables about one family. A table is asked about only if it is listed: the same question about one
// that is not would create it.
type legacyProbe struct {
	family        Family
	names         string // the file that lists its tables
	domain, level int    // for socket(2) and getsockopt(2)
	root          string // "", in tests what stands for /
	largest       uint32
	fd            int          // -1: not open
	tables        []string     // which of the five exist
	mangle        *legacyTable // as it was read for kubelet's chains
	err           error        // why the tables are not known
}

func newLegacyProbe(f Family) legacyProbe {
	p := legacyProbe{
		family: f, names: "ip_tables_names", domain: unix.AF_INET, level: unix.SOL_IP, largest: largestTable, fd: -1,
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

// net returns the path of a file about this thread's network namespace. /proc/net is about the process's first thread.
func (p *legacyProbe) net(name string) string { return p.root + "/proc/thread-self/net/" + name }

// list reads which tables exist in the namespace, and returns whether the kernel has x_tables of this family. The file
// exists once ip_tables or ip6_tables is loaded, and is empty until the first table is created.
func (p *legacyProbe) list() (works Answer) {
	var buf [128]byte // all five take 31
	n, err := readFile(p.net(p.names), buf[:])
	p.err = nil
	p.mangle = nil
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
		p.err = fmt.Errorf("list the tables: %w", err)
		return loaded
	case modulesCanLoad(p.root):
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

// loadable reports whether there is a module that iptables-legacy could load: it runs modprobe, which looks in this
// container's /lib/modules. See ip_tables in net/ipv4/netfilter/Kconfig; RHEL 10 has it in kernel-modules-extra.
func (p *legacyProbe) loadable() bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return true
	}
	module := "net/ipv4/netfilter/ip_tables.ko"
	if p.family == IPv6 {
		module = "net/ipv6/netfilter/ip6_tables.ko"
	}
	path := p.root + "/lib/modules/" + unix.ByteSliceToString(name.Release[:]) + "/kernel/" + module
	return slices.ContainsFunc([]string{"", ".xz", ".zst", ".gz"}, func(compressed string) bool {
		return !errors.Is(stat(path+compressed), unix.ENOENT)
	})
}

// withoutIPv6 reports that this is the probe of a family that the kernel cannot speak (ipv6.disable=1, or IPv6 is not
// in it). There is no socket to ask then, and asking for one could load it.
func (p *legacyProbe) withoutIPv6() bool {
	return p.family == IPv6 && errors.Is(stat(p.net("if_inet6")), unix.ENOENT) && stat(p.net("dev")) == nil
}

// kubelet looks for both of kubelet's chains, in a list of tables that was just read.
func (p *legacyProbe) kubelet() (hint, canary Answer, err error) {
	if p.err != nil {
		return Unknown, Unknown, p.err
	}
	if !slices.Contains(p.tables, mangle) {
		return No, No, nil
	}
	t, err := p.read(mangle)
	if err == nil {
		p.mangle = &t
	}
	return t.has(HintChain), t.has(CanaryChain), err
}

// read reads the header of a listed table, and its entries if they say more. With an error, it returns what the header
// says. If the table is replaced in between, so that its entries do not fit the header, both are read again.
func (p *legacyProbe) read(table string) (t legacyTable, err error) {
	err = retryChanged(func() error {
		info, err := p.info(table)
		if err != nil {
			return err
		}
		t = info.table(p.family)
		if t.known {
			return nil
		}
		if info.size > p.largest {
			return fmt.Errorf("%w: %d KiB, and the limit is %d", errTooMuch, info.size>>10, p.largest>>10)
		}
		entries, err := p.entries(table, info, hostAlignment())
		if errors.Is(err, unix.EINVAL) && hostAlignment() == 4 {
			// A 64-bit kernel without CONFIG_NETFILTER_XTABLES_COMPAT: it knows its own layout only.
			entries, err = p.entries(table, info, 8)
		}
		if err == nil {
			t = entries
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("read table %q: %w", table, err)
	}
	return t, err
}

// attempts is how often something is read again that changed while it was read.
const attempts = 5

// retryChanged calls read again if what it reads changed under way: a dump, or a legacy table that was replaced between
// its header and its entries. The kernel then refuses the entries with EAGAIN, or they do not fit the header.
func retryChanged(read func() error) (err error) {
	for range attempts {
		err = read()
		if !errors.Is(err, netlink.ErrInterrupted) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, errBadTable) {
			break
		}
	}
	return err
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

func (p *legacyProbe) entries(table string, info tableInfo, align int) (legacyTable, error) {
	start := entriesOffset(align)
	buf := make([]byte, start+int(info.size))
	copy(buf, table)
	binary.NativeEndian.PutUint32(buf[tableNameSize:], info.size)
	if _, err := p.getsockopt(soGetEntries, buf); err != nil {
		return legacyTable{}, err
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
	if errno != 0 {
		return 0, errno
	}
	return min(int(size), len(b)), nil
}

func stat(path string) error {
	var st unix.Stat_t
	return unix.Stat(path, &st)
}

// modulesCanLoad is false only where the kernel says for certain that nothing will be added to it.
func modulesCanLoad(root string) bool {
	var disabled [1]byte
	if _, err := readFile(root+"/proc/sys/kernel/modules_disabled", disabled[:]); errors.Is(err, unix.ENOENT) {
		// Built without modules; but where there is no /proc, the file is missing too.
		return stat(root+"/proc/sys/kernel/osrelease") != nil
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
