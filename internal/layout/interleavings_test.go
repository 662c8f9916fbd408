// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Who may be at work: three at a time are taken of those in which the most can happen.
var (
	most     = []actor{callNFT, callLegacy, kubeletNFT, kubeletLegacy, hostLegacy, selectLegacy, resets}
	everyone = append(most[:len(most):len(most)], deletes, reads, selectNFT, selectGuess)
)

// circumstances are where actors begin.
type circumstances struct {
	kernels  []kernel
	memories []evidence.Decision
	laid     []bool
}

var (
	few = circumstances{
		kernels:  []kernel{{}, {rules: legacy}},
		memories: []evidence.Decision{{}, {Mode: evidence.NFT, Reason: "default"}},
		laid:     []bool{true},
	}
	proven = circumstances{
		kernels:  []kernel{{}},
		memories: []evidence.Decision{{Mode: evidence.Legacy, Reason: "rule-count", Conclusive: true}},
		laid:     []bool{true},
	}
	all = circumstances{
		kernels: []kernel{{}, {rules: legacy}, {rules: nft}, {rules: both}, {rules: legacy, program: legacy}},
		memories: []evidence.Decision{
			{}, {Mode: evidence.NFT, Reason: "default"},
			{Mode: evidence.Legacy, Reason: "rule-count", Conclusive: true},
		},
		laid: []bool{true},
	}
)

// Every interleaving of two and of three actors, each of which may be killed before any of its steps. What is promised
// is in promises_test.go. With TEST_ALL, three are taken of all, in all circumstances.
func TestEveryInterleaving(t *testing.T) {
	d := newDisk(t)
	three, thrice, copied := most, few, few
	copied.memories = copied.memories[:1]
	if host.All() {
		three, thrice, copied = everyone, all, all
	}
	copied.laid = []bool{false}
	for _, e := range []struct {
		place  setting
		number int
		actors []actor
		at     circumstances
	}{
		{setting{dev: true}, 2, everyone, all},
		{setting{dev: true, readOnly: true}, 2, everyone, all},
		{setting{}, 2, everyone, all},
		{setting{readOnly: true}, 2, everyone, all},
		{setting{dev: true}, 2, everyone, copied},
		{setting{dev: true}, 3, three, thrice},
		{setting{dev: true, readOnly: true}, 3, three, thrice},
		{setting{dev: true}, 4, nil, proven},
	} {
		if e.place.readOnly && d.readOnly == "" {
			host.Cannot(t, "mount a directory read-only")
		}
		m := newMachine(d, e.place)
		setups := m.setups(e.actors, e.number, e.at)
		states := 0
		for _, s := range setups {
			states += len(m.explore(s).visited)
		}
		m.stop()
		d.set(content{}, e.place)
		t.Logf("%+v: %d at a time in %d setups: %d states; %d actors run, %d steps", e.place, e.number, len(setups),
			states, m.runs, len(m.moments))
		if states < 5*len(setups) {
			t.Error("it has ended early")
		}
	}
}

// setups lists all choices of so many actors, of which at least one is a call, or the one of four that counts.
func (m *machine) setups(of []actor, number int, at circumstances) (found []setup) {
	var memories []string
	for _, d := range at.memories {
		memories = append(memories, m.remember(d))
	}
	groups := choose(of, number)
	if of == nil {
		groups = [][]actor{{callNFT, callLegacy, kubeletNFT, resets}} // why the memory is read again under the lock
	}
	for _, actors := range groups {
		s := setup{setting: m.place, actors: actors}
		if s.count(adding, deleting, reading) == 0 {
			continue
		}
		for _, s.laid = range at.laid {
			for _, s.kernel = range at.kernels {
				for _, s.remembered = range memories {
					found = append(found, s)
				}
			}
		}
	}
	return found
}

// choose returns all choices of so many, the same one more than once included.
func choose(of []actor, number int) (all [][]actor) {
	if number == 0 {
		return [][]actor{nil}
	}
	for i := range of {
		for _, others := range choose(of[i:], number-1) {
			all = append(all, append([]actor{of[i]}, others...))
		}
	}
	return all
}

// remember returns what the memory contains after an answer, "" for none.
func (m *machine) remember(d evidence.Decision) string {
	if d.Mode == "" {
		return ""
	}
	m.disk.set(content{}, m.place)
	path := m.disk.path(slot(memory.Name), m.place)
	in := (&process{disk: m.disk}).open(parent(path))
	defer in.Close()
	host.Check(m.disk.tb, memory.In(in).Set(d))
	said, err := os.Readlink(path)
	host.Check(m.disk.tb, err)
	m.disk.read(m.place)
	return said
}
