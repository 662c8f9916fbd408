// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package interleave plays every order of the steps of two and of three processes: wrapped calls, select and reset,
// while names of the host appear. Each process may be killed before any of its steps. A step is a system call that
// reads or changes a link or the lock, with what the process computes until its next one.
//
// The processes are the code of internal/link, on a real file system, in a container of their own. In each order, the
// code must keep the promises in promises.go: with and without a place for the record, on a writable and on a
// read-only file system, while another user holds the lock, and with copies that are adopted. After each order, calls,
// a select and a reset run alone, and must find what the others have left in order.
//
// What this does not prove:
//   - Four processes could do what three cannot.
//   - Of three processes, "make test" plays only those, and in those circumstances, in which the most can happen.
//   - Where the six commands lead is read in one step by select and reset, although it is several system calls.
//   - Questions that fail are not played. Numbers of rules are not, either: each call has a guess of its own.
//   - install, and a root user who changes links by hand, take no part.
//   - A file system may write links in another order when power fails.
//   - That the program takes these steps and no others is not proven here: trace_test.go compares them with strace(1).
package interleave

import (
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Who may be at work: three at a time are taken of those in which the most can happen.
var (
	most     = []actor{callNFT, callLegacy, hintLegacy, programNFT, selectLegacy, resets}
	everyone = append(most[:len(most):len(most)], programLegacy, selectNFT)
)

// circumstances are where actors begin.
type circumstances struct {
	kernels []kernel
	records []detect.Backend
	laid    bool
}

var (
	few = circumstances{kernels: []kernel{{}, {program: nft}}, records: []detect.Backend{"", detect.NFT}, laid: true}
	all = circumstances{
		kernels: []kernel{{}, {program: nft}, {program: legacy}, {program: both}, {program: nft, hint: legacy},
			{hint: both}},
		records: []detect.Backend{"", detect.NFT, detect.Legacy},
		laid:    true,
	}
	copied     = circumstances{kernels: few.kernels, records: few.records[:1]}
	allCopied  = circumstances{kernels: all.kernels, records: all.records}
	unrecorded = circumstances{kernels: all.kernels, records: all.records[:1], laid: true}
)

// Every order of two and of three actors. With TEST_ALL, three are taken of all, in all circumstances.
func TestEveryInterleaving(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	d := newDisk(t)
	three, thrice, ofCopies := most, few, copied
	if host.All() {
		three, thrice, ofCopies = everyone, all, allCopied
	}
	for _, e := range []struct {
		place  setting
		number int
		actors []actor
		at     circumstances
	}{
		{setting{record: true}, 2, everyone, all},
		{setting{record: true, readOnly: true}, 2, everyone, all},
		{setting{record: true, locked: true}, 2, everyone, all},
		{setting{}, 2, everyone, unrecorded},
		{setting{readOnly: true}, 2, everyone, unrecorded},
		{setting{record: true}, 2, everyone, ofCopies},
		{setting{record: true}, 3, three, thrice},
		{setting{record: true, readOnly: true}, 3, three, thrice},
	} {
		m := newMachine(d, e.place)
		setups := m.setups(e.actors, e.number, e.at)
		states := 0
		for _, s := range setups {
			states += len(m.explore(s).visited)
		}
		m.stop()
		d.set(content{})
		t.Logf("%+v: %d at a time in %d setups: %d states; %d actors run, %d steps", e.place, e.number, len(setups),
			states, m.runs, len(m.moments))
		if states < 5*len(setups) {
			t.Error("it has ended early")
		}
	}
}

// setups lists all choices of so many actors, of which at least one is a call.
func (m *machine) setups(of []actor, number int, at circumstances) (found []setup) {
	for _, actors := range scheduled(of, number) {
		s := setup{setting: m.place, laid: at.laid, actors: actors}
		if s.count(calling) == 0 {
			continue
		}
		for _, s.kernel = range at.kernels {
			for _, s.recorded = range at.records {
				found = append(found, s)
			}
		}
	}
	return found
}

// scheduled returns all choices of so many, the same one more than once included.
func scheduled(of []actor, number int) (all [][]actor) {
	if number == 0 {
		return [][]actor{nil}
	}
	for i := range of {
		for _, others := range scheduled(of[i:], number-1) {
			all = append(all, append([]actor{of[i]}, others...))
		}
	}
	return all
}
