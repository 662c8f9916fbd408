// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// native are those that iptables-nft does not need from the kernel: it has instructions of nf_tables for them,
// depending on its version.
const native = "comment mark"

// missingExtensions are those that the kernel lacks for the wanted backend. A family of which it has none at all is
// not in use.
func (r *Report) missingExtensions() string {
	inUse := map[detect.Family]bool{}
	for _, x := range r.Extensions {
		inUse[x.Family] = inUse[x.Family] || x.Has == detect.Yes
	}
	excused := strings.Fields(native)
	var missing []string
	for _, x := range r.Extensions {
		needless := r.wanted() == detect.NFT && slices.Contains(excused, x.Name)
		if x.Has == detect.No && inUse[x.Family] && !needless {
			missing = append(missing, fmt.Sprintf("%s (%s)", x.Name, x.Family))
		}
	}
	return strings.Join(missing, ", ")
}
