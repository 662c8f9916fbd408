// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// everybody is who may be at work.
var everybody = []actor{
	callNFT, callLegacy, deletes, reads, kubeletNFT, kubeletLegacy, hostLegacy,
	selects(evidence.NFT), selects(evidence.Legacy), selectsGuess(evidence.NFT), resets,
}

// setupsOf lists all setups of so many actors in a place, of which one is a call.
func setupsOf(m *machine, number int) (all []setup) {
	var groups [][]actor
	var choose func(from int, chosen []actor)
	choose = func(from int, chosen []actor) {
		if len(chosen) == number {
			groups = append(groups, chosen)
			return
		}
		for i := from; i < len(everybody); i++ {
			choose(i, append(chosen[:len(chosen):len(chosen)], everybody[i]))
		}
	}
	choose(0, nil)
	memories := []string{
		"",
		m.remember(evidence.Decision{Mode: evidence.NFT, Reason: "default"}),
		m.remember(evidence.Decision{Mode: evidence.Legacy, Reason: "rule-count", Conclusive: true}),
	}
	for _, actors := range groups {
		s := setup{setting: m.place, actors: actors}
		if !s.has(adding, deleting, reading) {
			continue
		}
		for _, s.laid = range []bool{true, false} {
			for _, s.kernel = range []kernel{
				{},
				{rules: legacy},
				{rules: nft},
				{rules: both},
				{rules: legacy, program: legacy},
			} {
				for _, s.remembered = range memories {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// remember returns what the memory contains after an answer.
func (m *machine) remember(d evidence.Decision) string {
	m.disk.set(content{}, m.place)
	p := process{disk: m.disk, place: m.place}
	p.place.readOnly = false
	dir := p.open(m.disk.commands)
	dir.Step = nil
	defer dir.Close()
	in := p.memory(dir)
	defer in.Dir.Close()
	in.Dir.Step = nil
	host.Check(m.disk.tb, in.Set(d))
	said, err := os.Readlink(m.disk.path(slot(memory.Name), m.place))
	host.Check(m.disk.tb, err)
	m.disk.read(m.place)
	return said
}

// remembers reports whether there is a place for the memory.
func (s setup) remembers() bool { return s.dev || !s.readOnly }

// proven reports whether anything but a guess can have been stored.
func (x *exploration) proven(now state) bool {
	return x.setup.certainMemory() || x.setup.kernel != kernel{} && x.setup.kernel.rules != both ||
		x.has(selecting, guessing, kubelet, hostProgram)
}

func (s setup) certainMemory() bool { return s.remembered != "" && s.remembered[:6] == "legacy" }

// verdict is about a content: what is wrong, and whether the switch is at a program.
type verdict struct {
	wrong  error
	stored bool
}

func (m *machine) verdict(number int32) verdict {
	for int(number) >= len(m.verdicts) {
		c := m.contents[len(m.verdicts)]
		m.verdicts = append(m.verdicts, verdict{c.wrong(), storedMode(c.get(Switch)) != ""})
	}
	return m.verdicts[number]
}

// check checks what must hold at each moment.
func (x *exploration) check(now state) {
	v := x.verdict(now.content)
	if v.wrong != nil {
		x.fail(now, "%v", v.wrong)
	}
	if v.stored && !x.proven(now) {
		x.fail(now, "the switch is at a program, by a guess")
	}
}

// checkEnd checks what must hold when nobody is at work any more, and what the next call will run.
func (x *exploration) checkEnd(now state) {
	if now.owner != noOwner {
		x.fail(now, "the lock is left")
	}
	ran := map[evidence.Mode]bool{}
	var kubeletsCall, selected bool
	var choice evidence.Mode
	for i, at := range now.actors {
		if at < 0 {
			continue
		}
		a, o := x.actors[i], x.moments[at].outcome
		if x.moments[at].step != "" {
			x.fail(now, "%s waits for ever", a.name)
		}
		if o.binds {
			ran[o.ran] = true
		}
		kubeletsCall = kubeletsCall || o.byKubelet
		if a.kind == selecting && o.err == nil {
			selected = true
			choice = a.mode
		}
	}
	quiet := !x.has(kubelet, selecting, guessing, resetting) && x.remembers()
	if quiet && len(ran) > 1 {
		x.fail(now, "two backends run")
	}
	for _, a := range []actor{callNFT, callLegacy} {
		_, o := x.alone(now, a)
		if quiet && len(ran) == 1 && !ran[o.ran] {
			x.fail(now, "the next %s runs %s", a.name, o.ran)
		}
		if kubeletsCall && !x.has(selecting, guessing) && o.ran != now.kernel.kubelet.mode() && x.number1(kubelet) == 1 {
			x.fail(now, "after kubelet's word, the next %s runs %s", a.name, o.ran)
		}
		if selected && x.number1(selecting) == 1 && !x.has(kubelet, guessing, resetting) && o.ran != choice {
			x.fail(now, "after select, the next %s runs %s", a.name, o.ran)
		}
	}
}

func (s setup) number1(k kind) (n int) {
	for _, a := range s.actors {
		if a.kind == k {
			n++
		}
	}
	return n
}
