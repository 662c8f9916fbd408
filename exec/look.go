// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Lead is where one of the six names leads.
type Lead struct {
	Name string
	End  string // the file at the end of its links, "" where there is none
	Mode string // "nft" or "legacy" for a program of iptables, "" for a wrapper or something else

	Wrapper bool  // it leads to a wrapper
	Err     error // why it leads nowhere
	Fixed   error // why the link that a decision moves cannot be moved, nil if it can
}

// Leads looks at the six names in a directory, and changes nothing.
func Leads(d string) []Lead {
	var leads []Lead
	for _, name := range slices.Backward(names[:]) {
		c, err := follow(in(d, name))
		l := Lead{Name: name, Err: err}
		if err == nil {
			l.End, l.Wrapper = c.end, isWrapper(c.end)
			l.Mode = c.mode()
			moved := c.link
			if moved == "" {
				moved = c.end
			}
			l.Fixed = writable(dir(moved))
		}
		leads = append(leads, l)
	}
	return leads
}

// mode says which backend's programs the way goes through.
func (c chain) mode() string {
	for _, path := range c.way {
		if mode := modeOf(base(path)); mode != "" {
			return mode
		}
	}
	return ""
}

// writable says what keeps this process from making a file in a directory: EROFS, EACCES.
func writable(d string) error {
	return unix.Faccessat(unix.AT_FDCWD, d, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}
