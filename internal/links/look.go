// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Status is where one of the six names leads.
type Status struct {
	Name     string
	Hops     []string    // the name, the targets of its symlinks, the file
	End      string      // the file, "" if the name is broken
	Mode     detect.Mode // of the iptables program that it points to, "" if none
	Wrapper  bool        // it points to a wrapper
	Switched bool        // it goes through the switch
	Err      error       // why it is broken
	Fixed    error       // why its switch, or the link that would have to be replaced, cannot be; nil if it can
}

// Look returns where the six names in a directory lead. It changes nothing.
func (w Wrapper) Look(dir string) []Status {
	l := w.layout(dir)
	var all []Status
	for _, e := range l.names {
		s := Status{Name: programs.Base(e.path), Hops: e.chain.Hops, Switched: e.switched, Err: e.err}
		if e.err == nil {
			s.End, s.Mode, s.Wrapper = e.chain.End, e.chain.Mode(), w.isWrapperEnd(e.chain)
			changed := dir
			if !e.switched {
				changed = programs.Dir(e.link)
			}
			s.Fixed = w.writable(changed)
		}
		all = append(all, s)
	}
	return all
}
