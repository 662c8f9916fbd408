// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"
	"slices"
)

// This file decodes the tables of x_tables as getsockopt(2) returns them, in the layout of
// linux/netfilter_ipv4/ip_tables.h, linux/netfilter_ipv6/ip6_tables.h and linux/netfilter/x_tables.h. It does no I/O.

// Options at level SOL_IP and SOL_IPV6. golang.org/x/sys/unix has none of them.
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

	// struct ipt_getinfo, decoded by parseInfo
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
	errorNameSize   = 30
	errorTargetSize = 32 // of its name, as it is aligned

	hooks = 5 // NF_INET_NUMHOOKS
)

// hostAlignment returns the alignment of 64-bit numbers in what the kernel returns to this program: 8 bytes, but 4 on
// 386, for which a 64-bit kernel has a compatibility layout.
func hostAlignment() int {
	if runtime.GOARCH == "386" {
		return 4
	}
	return 8
}

// entryLayout is where the fields of an entry are.
type entryLayout struct{ targetOffset, nextOffset, size int }

// layoutOf returns the offsets in
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
func layoutOf(family Family, align int) entryLayout {
	if family == IPv4 {
		return entryLayout{targetOffset: 88, nextOffset: 90, size: 112}
	}
	return entryLayout{targetOffset: 140, nextOffset: 142, size: 160 + align}
}

// entriesOffset is where the entries begin.
//
//	struct ipt_get_entries {
//		char name[XT_TABLE_MAXNAMELEN];
//		unsigned int size;              // of the entries
//		struct ipt_entry entrytable[];
//	};
func entriesOffset(align int) int { return tableNameSize + align }

var errBadTable = errors.New("x_tables: table is cut off or malformed")

// tableInfo is the header of a table.
type tableInfo struct {
	chains  int // built-in chains, each with a policy as its last entry
	used    int // those that have a rule
	rules   int // bytes of the rules in built-in chains
	entries int
	size    uint32 // of the entries, in bytes
}

// parseInfo decodes
//
//	struct ipt_getinfo {
//		char name[XT_TABLE_MAXNAMELEN];
//		unsigned int valid_hooks;                    // a bit per hook
//		unsigned int hook_entry[NF_INET_NUMHOOKS];   // offset of the chain's first entry
//		unsigned int underflow[NF_INET_NUMHOOKS];    // offset of the chain's policy
//		unsigned int num_entries;
//		unsigned int size;
//	};
func parseInfo(b []byte) (tableInfo, error) {
	if len(b) != sizeofGetInfo {
		return tableInfo{}, errBadTable
	}
	field := func(i int) uint32 { return binary.NativeEndian.Uint32(b[tableNameSize+4*i:]) }
	valid := field(0)
	info := tableInfo{chains: bits.OnesCount32(valid), entries: int(field(1 + 2*hooks)), size: field(2 + 2*hooks)}
	for hook := range hooks {
		if valid&(1<<hook) == 0 {
			continue
		}
		first, policy := int(field(1+hook)), int(field(1+hooks+hook))
		if first != policy {
			info.used++
		}
		info.rules += policy - first
	}
	// Each built-in chain ends with a policy. The kernel refuses a table without an error entry at its end
	// (translate_table in ip_tables.c).
	if info.entries < info.chains+1 {
		return tableInfo{}, errBadTable
	}
	return info, nil
}

// mayHaveUserChains reports whether there is room for user-defined chains beside the built-in ones and the end of the
// table. It is true on 386, where a 64-bit kernel may use its own layout, and if the header contradicts itself.
func (t tableInfo) mayHaveUserChains(family Family) bool {
	smallest := layoutOf(family, hostAlignment()).size + sizeofTarget
	policies := t.chains * (smallest + hostAlignment())
	end := smallest + errorTargetSize
	inUserChains := int(t.size) - policies - t.rules - end
	return hostAlignment() != 8 || t.rules < 0 || inUserChains != 0
}

// legacyTable is what is known of a table.
type legacyTable struct {
	chains [][]byte // the names of the user-defined chains
	known  bool     // these are all
	rules  int      // as iptables-save counts them, about
	any    Answer   // whether it has any
}

// has says whether there is a chain.
func (t legacyTable) has(chain string) Answer {
	found := slices.ContainsFunc(t.chains, func(name []byte) bool { return string(name) == chain })
	if !found && !t.known {
		return Unknown
	}
	return answer(found)
}

// table returns what the header alone says: all entries but the policies and the end of the table may be rules.
func (t tableInfo) table(family Family) legacyTable {
	n := t.entries - t.chains - 1
	switch {
	case !t.mayHaveUserChains(family):
		return legacyTable{known: true, rules: n, any: answer(n > 0)}
	case t.used > 0:
		return legacyTable{rules: n, any: Yes}
	default:
		return legacyTable{rules: n}
	}
}

// parseEntries walks over the entries of a table, which must be the one that info is about.
//
// A table is a row of chains. A built-in chain is its rules, then its policy, which is an entry too. A user-defined
// chain is an entry with the target ERROR and the chain's name, its rules, and an entry that returns. At the end
// stands one more ERROR.
func parseEntries(family Family, align int, info tableInfo, b []byte) (legacyTable, error) {
	at := layoutOf(family, align)
	if uint64(len(b)) != uint64(info.size) {
		return legacyTable{}, errBadTable
	}
	t := legacyTable{known: true}
	entries := 0
	for len(b) > 0 {
		if len(b) < at.size {
			return legacyTable{}, errBadTable
		}
		target := int(binary.NativeEndian.Uint16(b[at.targetOffset:]))
		next := int(binary.NativeEndian.Uint16(b[at.nextOffset:]))
		if next > len(b) || target < at.size || next < target+sizeofTarget {
			return legacyTable{}, errBadTable
		}
		name := cString(b[target+2 : target+2+targetNameSize])
		if isLast := next == len(b); !isLast && string(name) == "ERROR" {
			if next < target+sizeofTarget+errorNameSize {
				return legacyTable{}, errBadTable
			}
			t.chains = append(t.chains, cString(b[target+sizeofTarget:][:errorNameSize]))
		}
		entries++
		b = b[next:]
	}
	t.rules = entries - info.chains - 2*len(t.chains) - 1
	if entries != info.entries || t.rules < 0 {
		return legacyTable{}, errBadTable
	}
	t.any = answer(t.rules > 0)
	return t, nil
}

// cString returns the bytes before the first NUL, all of them where there is none.
func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
