// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package xtables asks x_tables, the kernel's part of iptables-legacy: /proc lists the tables, and getsockopt(2)
// returns the content of one.
//
// Asking for a table creates it, so the package asks only for tables that exist. Without x_tables, it asks nothing: on
// kernels with CONFIG_BPFILTER_UMH, even the question starts a helper program as root.
package xtables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// This file decodes tables as getsockopt(2) returns them, in the layout of linux/netfilter_ipv4/ip_tables.h,
// linux/netfilter_ipv6/ip6_tables.h and linux/netfilter/x_tables.h. It does no I/O. The options are at level SOL_IP and
// SOL_IPV6; golang.org/x/sys/unix has none of them.
const (
	// #define IPT_BASE_CTL       64
	// #define IPT_SO_GET_INFO    (IPT_BASE_CTL)
	// #define IPT_SO_GET_ENTRIES (IPT_BASE_CTL + 1), both as in IP6T
	soGetInfo    = 64
	soGetEntries = 65
)

const (
	// #define XT_TABLE_MAXNAMELEN 32
	tableNameSize = 32

	// struct ipt_getinfo, decoded by parseHeader
	sizeofGetInfo = 84

	// struct xt_entry_target {
	//	__u16 target_size;
	//	char  name[XT_EXTENSION_MAXNAMELEN]; // 29
	//	__u8  revision;
	//	unsigned char data[];
	// };
	sizeofTarget   = 32
	targetNameSize = 29

	// struct xt_error_target {
	//	struct xt_entry_target target;
	//	char errorname[XT_FUNCTION_MAXNAMELEN];
	// };
	errorNameSize = 30

	hooks = 5 // NF_INET_NUMHOOKS
)

// errBadTable does not go away if the table is read again: the kernel copies the entries of one table.
var errBadTable = errors.New("the table is cut off or malformed")

// alignments returns the alignments that 64-bit numbers may have in what the kernel returns to this program: 8, but 4
// on 386, unless a 64-bit kernel knows only its own layout (without CONFIG_NETFILTER_XTABLES_COMPAT, as in Debian 13).
func alignments() []int {
	if runtime.GOARCH == "386" {
		return []int{4, 8}
	}
	return []int{8}
}

// entryLayout returns the offset of target_offset, which next_offset follows, and the size without elems of
//
//	struct ipt_entry {                       struct ip6t_entry {
//		struct ipt_ip ip;        //  84      	struct ip6t_ip6 ipv6;    // 136
//		unsigned int nfcache;                	unsigned int nfcache;
//		__u16 target_offset;                 	__u16 target_offset;
//		__u16 next_offset;                   	__u16 next_offset;
//		unsigned int comefrom;               	unsigned int comefrom;
//		struct xt_counters counters; // 16   	struct xt_counters counters;
//		unsigned char elems[];               	unsigned char elems[];
//	};                                       };
func entryLayout(ipv6 bool, align int) (offset, size int) {
	if ipv6 {
		return 140, 160 + align
	}
	return 88, 112
}

// entriesOffset returns the offset of the first entry in
//
//	struct ipt_get_entries {
//		char name[XT_TABLE_MAXNAMELEN];
//		unsigned int size;              // of the entries
//		struct ipt_entry entrytable[];
//	};
func entriesOffset(align int) int { return tableNameSize + align }

type header struct {
	chains  int    // built-in chains, each with a policy as its last entry
	entries int    // of all kinds
	size    uint32 // of the entries, in bytes

	valid  uint32        // a bit for each hook that has a chain
	policy [hooks]uint32 // the offset of the chain's policy
}

// parseHeader decodes
//
//	struct ipt_getinfo {
//		char name[XT_TABLE_MAXNAMELEN];
//		unsigned int valid_hooks;                    // a bit per hook
//		unsigned int hook_entry[NF_INET_NUMHOOKS];   // offset of the chain's first entry
//		unsigned int underflow[NF_INET_NUMHOOKS];    // offset of the chain's policy
//		unsigned int num_entries;
//		unsigned int size;
//	};
func parseHeader(b []byte) (header, error) {
	if len(b) != sizeofGetInfo {
		return header{}, errBadTable
	}
	field := func(i int) uint32 { return binary.NativeEndian.Uint32(b[tableNameSize+4*i:]) }
	h := header{
		chains:  bits.OnesCount32(field(0)),
		entries: int(field(1 + 2*hooks)),
		size:    field(2 + 2*hooks),
		valid:   field(0),
	}
	for i := range hooks {
		h.policy[i] = field(1 + hooks + i)
	}
	return h, nil
}

// Table is the content of a table.
type Table struct {
	Chains []string // names of user-defined chains; none if the table is larger than Limit
	Rules  int      // without policies; if the table is larger than Limit, its entries of all kinds
	Whole  bool     // the table is not larger than Limit
}

// parseEntries decodes the entries of a table. keep chooses the chains whose names are returned: those of all would
// take too much memory.
func parseEntries(ipv6 bool, align int, h header, b []byte, keep func(chain []byte) bool) (Table, error) {
	var chains []string
	t, err := walk(ipv6, align, h, b, func(_ int, head, _ []byte) {
		if head != nil && keep(head) {
			chains = append(chains, string(head))
		}
	})
	if err == nil {
		t.Chains = chains
	}
	return t, err
}

// walk calls each with the offset, the head and the target of the entries of a table, except the end. The head is the
// name of the user-defined chain that begins there, nil for another entry. h must be the header of the same table.
//
// A table is a sequence of chains. A built-in chain is its rules, then an entry for its policy. A user-defined chain is
// an entry with the target ERROR and the chain's name, its rules, and an entry that returns. The table ends with one
// more entry with the target ERROR.
func walk(ipv6 bool, align int, h header, b []byte, each func(at int, head, target []byte)) (Table, error) {
	offset, size := entryLayout(ipv6, align)
	if uint64(len(b)) != uint64(h.size) {
		return Table{}, errBadTable
	}
	entries, chains := 0, 0
	for at := 0; at < len(b); entries++ {
		if len(b)-at < size {
			return Table{}, errBadTable
		}
		start := int(binary.NativeEndian.Uint16(b[at+offset:]))
		next := int(binary.NativeEndian.Uint16(b[at+offset+2:]))
		if next > len(b)-at || start < size || next < start+sizeofTarget {
			return Table{}, errBadTable
		}
		target := b[at+start : at+next]
		isEnd := at+next == len(b)
		var head []byte
		if !isEnd && string(targetName(target)) == "ERROR" {
			if len(target) < sizeofTarget+errorNameSize {
				return Table{}, errBadTable
			}
			chains++
			head = cString(target[sizeofTarget:][:errorNameSize])
		}
		if !isEnd {
			each(at, head, target)
		}
		at += next
	}
	t := Table{Rules: entries - h.chains - 2*chains - 1, Whole: true}
	if entries != h.entries || t.Rules < 0 {
		return Table{}, iptables.ErrChanged
	}
	return t, nil
}

func targetName(target []byte) []byte { return cString(target[2 : 2+targetNameSize]) }

func cString(b []byte) []byte {
	text, _, _ := bytes.Cut(b, []byte{0})
	return text
}
