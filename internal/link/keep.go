// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Decision is what a call has decided. The decision of the variable is never kept.
type Decision struct {
	Backend  detect.Backend
	Program  string // the path of the backend's program
	Certain  bool
	Complete bool // no question failed
	Root     bool // the user is root
}

// Keep keeps a decision if it may, and returns the backend that the call runs: the decision's, or the one that another
// call has kept. own is DIR, or nil if there is none. If a step fails, nothing more is kept, and the call goes on: the
// next one asks again. A guess gives way to any record.
//
// A decision is recorded if 1 to 3 hold, and is then stored in the switch if 4 holds, too:
//
//  1. The user is root. A guess is only recorded, and only if no question failed.
//  2. The switch points to the wrapper, or the running file is a copy that can be adopted.
//  3. The mounts and the network namespace are those of process 1.
//  4. The directory can be written, no other process has its lock, and the switch still points to the wrapper.
//
// The order of the writes is a protocol. The tests in internal/link/interleave run every interleaving of it.
func Keep(own *Dir, record Record, decided Decision) detect.Backend {
	recorded := record.Read()
	if !decided.Certain && recorded != "" {
		return recorded // another call made the record while this one asked
	}
	mayRecord := decided.Root && (decided.Certain || decided.Complete)
	if !mayRecord || own == nil || !own.pointsToWrapper() {
		return decided.Backend
	}
	records := recorded != decided.Backend && record.Dev != nil && record.Dev.CheckWritable() == nil
	content := own.switchContent(decided)
	if !records && content == "" || !OwnContainer() {
		return decided.Backend
	}
	backend := decided.Backend
	if records {
		backend = record.keep(decided)
	}
	if content == "" {
		return backend
	}
	return own.store(content, backend)
}

// pointsToWrapper reports whether condition 2 of Keep holds.
func (d *Dir) pointsToWrapper() bool {
	if d.running != Wrapper {
		return d.isCopy()
	}
	stored, err := d.Stored()
	return err == nil && stored == ""
}

// switchContent returns the content that a decision would give the switch, "" if the switch must not be changed, or
// cannot be.
func (d *Dir) switchContent(decided Decision) string {
	if !decided.Certain || d.CheckWritable() != nil {
		return ""
	}
	content, err := d.contentFor(decided.Backend, decided.Program)
	if err != nil {
		return "" // such as ErrSingle, in an image without multi-call programs
	}
	return content
}

// store gives the switch the content that points to a backend's program, unless another call was faster. It returns the
// backend that the call runs. The lock is held until execve(2).
func (d *Dir) store(content string, backend detect.Backend) detect.Backend {
	err := d.Lock(0)
	if err == nil && d.running != Wrapper {
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
