// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/extensions"
)

// extensions prints for each family which matches and targets the kernel has, and which it could not be asked for.
func (s *session) extensions(all []extensions.Support) {
	for _, family := range []detect.Family{detect.IPv4, detect.IPv6} {
		names := map[detect.Answer][]string{}
		var loading, aliases []string
		var failure error
		for _, x := range all {
			switch {
			case x.Family != family:
			case x.Has == detect.Unknown && x.Err == nil:
				loading = append(loading, x.Name)
				aliases = append(aliases, x.Alias())
			default:
				names[x.Has] = append(names[x.Has], x.Name)
				failure = cmp.Or(failure, x.Err)
			}
		}
		list := func(text string, names []string) {
			if len(names) > 0 {
				s.paragraph(string(family)+" kernel:    ", text+strings.Join(names, " "))
			}
		}
		list("has ", names[detect.Yes])
		list("lacks ", names[detect.No])
		list(fmt.Sprintf("not known (%v): ", failure), names[detect.Unknown])
		list("cannot be asked without loading a module: ", loading)
		list("on the node, this shows what it would load, and loads nothing: modprobe -a -n -v ", aliases)
	}
}
