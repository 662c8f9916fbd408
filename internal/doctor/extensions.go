// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// needless are those for which iptables-nft, depending on its version, needs nothing from the kernel: nf_tables itself
// can do that. It warns all the same, "Extension mark revision 0 not supported", and then adds the rule. As to comment,
// see nft-cannot-add.
const needless = "mark tcp udp comment"

// missingExtensions are those that the kernel lacks for the wanted backend. A family of which it has none at all is
// not in use.
func (r *Report) missingExtensions() string {
	inUse := map[detect.Family]bool{}
	for _, x := range r.Extensions {
		inUse[x.Family] = inUse[x.Family] || x.Has == detect.Yes
	}
	excused := strings.Fields(needless)
	var missing []string
	for _, x := range r.Extensions {
		excusable := r.wanted() == detect.NFT && slices.Contains(excused, x.Name)
		if x.Has == detect.No && inUse[x.Family] && !excusable {
			missing = append(missing, fmt.Sprintf("%s (%s)", x.Name, x.Family))
		}
	}
	return strings.Join(missing, ", ")
}
