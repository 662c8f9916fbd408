// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import "math"

// entryLayout is where the fields of an entry are. The counters before the end are 64-bit numbers.
type entryLayout struct {
	targetOffset, nextOffset int
	size                     int
}

// layout of
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
func layout(family Family, align alignment) entryLayout {
	switch {
	case family == IPv4:
		return entryLayout{88, 90, 112}
	case align == 4:
		return entryLayout{140, 142, 164}
	default:
		return entryLayout{140, 142, 168}
	}
}

// bound says how many rules the header alone allows.
//
// All entries but the policies and the end of the table are rules, or in pairs the head and the end of a user-defined chain. At
// least one rule is in each built-in chain that does not begin with its policy. More follows from the size, because that of a
// chain without rules is known, and that of a rule has limits: a smallest one, which has no match and an empty target, and
// 65,535 bytes, because its length is a __u16.
func (t tableInfo) bound(family Family) Count {
	n := t.entries - t.chains - 1
	b := Count{min(t.used, n), n}
	for _, align := range []alignment{4, 8} {
		smallest := layout(family, align).size + sizeofTarget
		policy, head := smallest+int(align), smallest+errorTargetSize
		chain := head + policy // it ends with an entry like a policy
		size := int(t.size) - t.chains*policy - head
		inChains := size - t.rules
		if t.policy != policy || t.rules < 0 || inChains < 0 {
			continue
		}
		least, most := t.used, n
		if inChains > 0 {
			most = n - 2
		}
		least = max(least, n-2*(inChains/chain))
		// A rule is larger or smaller than half of a chain.
		switch more := 2*size - n*chain; {
		case more > 0:
			least = max(least, ceil(more, 2*math.MaxUint16-chain))
		case more < 0:
			least = max(least, ceil(-more, chain-2*smallest))
		}
		if least += (n - least) & 1; least <= most { // chains have two entries each
			return Count{least, most}
		}
	}
	return b
}

func ceil(n, by int) int { return (n + by - 1) / by }
