// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Answer is what a call has decided. An answer by the variable is never kept.
type Answer struct {
	Backend  detect.Backend
	Program  string // the path of the program that was found for it
	Certain  bool
	Complete bool // no question failed
	Root     bool // the user is root
}

// Keep keeps an answer as far as it may, and returns the backend that the call runs: its own, or the one that another
// call has kept. here is DIR, or nil if there is none. Whatever fails on the way ends the keeping, and is no error to
// the call: the next one asks again. A guess gives way to any record.
//
// An answer is recorded if 1 to 3 hold, and then stored in the switch if 4 holds, too:
//
//  1. The user is root. A guess is only recorded, and only if no question failed.
//  2. The switch points to the wrapper, or the running file is a copy that can be adopted.
//  3. The mounts and the network namespace are those of process 1.
//  4. The directory can be written, nobody else has its lock, and the switch still points to the wrapper.
//
// The order of the writes is a protocol, and every interleaving of it is tested in internal/link/interleave.
func Keep(here *Dir, record Record, a Answer) detect.Backend {
	recorded := record.Read()
	if !a.Certain && recorded != "" {
		return recorded // while this call asked, another one has run
	}
	mayRecord := a.Root && (a.Certain || a.Complete)
	if !mayRecord || here == nil || !here.wraps() {
		return a.Backend
	}
	records := recorded != a.Backend && record.Dev != nil && record.Dev.Writable() == nil
	content := here.toStore(a)
	if !records && content == "" || !OwnContainer() {
		return a.Backend
	}
	backend := a.Backend
	if records {
		backend = record.keep(a)
	}
	if content == "" {
		return backend
	}
	return here.store(content, backend)
}

// wraps is condition 2.
func (d *Dir) wraps() bool {
	if d.Running != Wrapper {
		return d.isCopy()
	}
	stored, err := d.Stored()
	return err == nil && stored == ""
}

// toStore returns what an answer would put into the switch, "" if that is not to be changed, or cannot be.
func (d *Dir) toStore(a Answer) string {
	if !a.Certain || d.Writable() != nil {
		return ""
	}
	content, err := d.contentFor(a.Backend, a.Program)
	if err != nil {
		return "" // an image that has only single programs
	}
	return content
}

// store points the switch at a certain answer's program, unless another call has been faster. It returns the backend
// that the call runs. The lock stays until execve(2).
func (d *Dir) store(content string, backend detect.Backend) detect.Backend {
	err := d.Lock(0)
	if err == nil && d.Running != Wrapper {
		err = d.adopt()
	}
	if err != nil {
		return backend
	}
	stored, err := d.Stored()
	switch {
	case err != nil:
	case stored == "":
		_ = d.Replace(content, Switch)
	default:
		return stored
	}
	return backend
}
