// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
)

// FuzzListing reads anything as a rule's expressions. With another one behind, the listing is no better, and a lookup
// is never faithful.
func FuzzListing(f *testing.F) {
	data := nft.Attributes{}.BE32(unix.NFTA_META_DREG, 1).BE32(unix.NFTA_META_KEY, unix.NFT_META_MARK)
	load := expression("meta", data)
	value := nft.Attributes{}.Bytes(unix.NFTA_DATA_VALUE, []byte{1, 0, 0, 0})
	compare := expression("cmp", nft.Attributes{}.BE32(unix.NFTA_CMP_SREG, 1).Nest(unix.NFTA_CMP_DATA, value))
	f.Add([]byte(load), true)
	f.Add(slices.Concat([]byte(load), []byte(compare)), false)
	f.Fuzz(func(t *testing.T, expressions []byte, ipv6 bool) {
		how, _ := listingOf(rule(expressions, ipv6))
		if !whole(expressions) {
			t.Skip("nothing can follow")
		}
		behind, _ := listingOf(rule(slices.Concat(expressions, []byte(expression("lookup", nil))), ipv6))
		if behind < how || len(expressions) == 0 && behind != altered {
			t.Errorf("got %d, and %d with a lookup behind", how, behind)
		}
	})
}

// whole reports whether attributes can follow.
func whole(expressions nft.Attributes) bool {
	const most = 1 << 15 // of an attribute, half of what its length can say
	ends := len(expressions)%4 == 0 && len(expressions) < most
	for len(expressions) > 0 {
		var value nft.Attributes
		value, expressions = expressions.Next()
		ends = ends && value != nil
	}
	return ends
}

func expression(name string, data nft.Attributes) nft.Attributes {
	element := nft.Attributes{}.Text(unix.NFTA_EXPR_NAME, name).Nest(unix.NFTA_EXPR_DATA, data)
	return nft.Attributes{}.Nest(unix.NFTA_LIST_ELEM, element)
}

func rule(expressions []byte, ipv6 bool) nft.Message {
	family := byte(unix.NFPROTO_IPV4)
	if ipv6 {
		family = unix.NFPROTO_IPV6
	}
	body := []byte{family, unix.NFNETLINK_V0, 0, 0}
	return nft.Message{Body: nft.Attributes(body).Nest(unix.NFTA_RULE_EXPRESSIONS, expressions)}
}
