// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Status is where one of the six names leads.
type Status struct {
	Name       string      `json:"name"`
	ResolvesTo string      `json:"resolves_to,omitempty"` // a file, "" if the name is broken
	Mode       detect.Mode `json:"mode,omitempty"`        // of the iptables program that it resolves to
	Wrapper    bool        `json:"wrapper"`               // it resolves to a wrapper
	Switched   bool        `json:"switch"`                // it goes through the switch
	Error      string      `json:"error,omitempty"`       // why it is broken
	Fixed      error       `json:"-"`                     // why its switch, or the link to replace, cannot be replaced
}

// Look returns where the six names in a directory lead. It changes nothing.
func (w Wrapper) Look(dir string) []Status {
	l := w.layout(dir)
	var all []Status
	for _, e := range l.names {
		s := Status{Name: programs.Base(e.path), Switched: e.switched}
		if e.err != nil {
			s.Error = e.err.Error()
		} else {
			s.ResolvesTo, s.Mode, s.Wrapper = e.chain.End, e.chain.Mode(), w.isWrapperEnd(e.chain)
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
