// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// kernel is what there is to be found in the network namespace: a small model of it. What a call runs writes rules,
// which are evidence for others.
type kernel struct {
	kubelet backends // where kubelet's chains are
	program backends // where a program of the host has its chains
	rules   backends // where there are rules, from the beginning or by calls
}

// backends are none, one or both of them.
type backends uint8

const (
	nft    backends = 1
	legacy backends = 2
	both            = nft | legacy
)

func of(mode evidence.Mode) backends {
	switch mode {
	case evidence.NFT:
		return nft
	case evidence.Legacy:
		return legacy
	}
	return 0
}

// mode is the one backend, or nft of both.
func (b backends) mode() evidence.Mode {
	switch {
	case b&nft != 0:
		return evidence.NFT
	case b == legacy:
		return evidence.Legacy
	}
	return ""
}

// decide asks the real table. guess is the answer of the last rows, which may differ between calls: one makes the dry
// run, another one does not.
func (k kernel) decide(remembered evidence.Decision, guess evidence.Mode) evidence.Decision {
	q := evidence.Query{Remembered: remembered, Installed: guess}
	return q.Decide(k.of(nft), k.of(legacy))
}

// of is what there is to be found of one backend.
func (k kernel) of(b backends) (found evidence.Backend) {
	answer := func(in backends) evidence.Answer {
		if in&b != 0 {
			return evidence.Yes
		}
		return evidence.No
	}
	for family := range found {
		found[family] = evidence.About{
			Works: evidence.Yes, Hint: answer(k.kubelet), Canary: evidence.No, HostChain: answer(k.program),
			HostTable: evidence.No, Rules: answer(k.rules), Count: int(answer(k.rules)),
		}
	}
	return found
}

// decides is the part of it that decides.
func (k kernel) decides() kernel {
	switch {
	case k.kubelet != 0:
		return kernel{kubelet: k.kubelet}
	case k.program != 0:
		return kernel{program: k.program}
	}
	return k
}

// actor is a process.
type actor struct {
	name string
	kind kind
	mode evidence.Mode            // of which it is
	run  func(p *process) outcome // nil for what happens at one instant
	does func(k kernel) kernel    // that
}

type kind int

const (
	adding kind = iota
	deleting
	reading
	selecting
	guessing
	resetting
	kubelet
	hostProgram
)

// outcome is how a process ended.
type outcome struct {
	ran       evidence.Mode // the backend, "" if it is no call
	byKubelet bool
	binds     bool // others must run the same
	err       error
}

// process is an actor at work on a disk.
type process struct {
	disk   *disk
	kernel *kernel
	place  setting
	step   func(operation, name string)
}

// setting is what does not change while actors are at work.
type setting struct {
	readOnly bool // DIR
	dev      bool // the memory is in a directory of its own
}

// path is that of DIR.
func (p *process) path() string {
	if p.place.readOnly {
		return p.disk.readOnly
	}
	return p.disk.commands
}

// memory is in a directory of its own, or beside the switch.
func (p *process) memory(beside *dir.Dir) memory.Memory {
	if p.place.dev {
		beside = p.open(p.disk.dev)
	}
	if beside == nil {
		return memory.Memory{}
	}
	return memory.In(beside)
}

func (p *process) open(path string) *dir.Dir {
	d, err := dir.Open(path)
	if err != nil {
		p.disk.tb.Error(err)
		return nil
	}
	d.Step = p.step
	return d
}

// call is a wrapped call of one of the six names.
func call(name, command string, k kind, guess evidence.Mode) actor {
	return actor{name: name, kind: k, mode: guess, run: func(p *process) outcome {
		p.step("execve", command)
		end, err := filepath.EvalSymlinks(p.disk.commands + "/" + command)
		if err != nil {
			return outcome{err: err}
		}
		if stored := iptables.ModeOf(filepath.Base(end)); stored != "" {
			return p.runs(k, outcome{ran: stored, binds: k != reading}) // the wrapper is not run at all
		}
		p.step("locate", command)
		place := Locate(p.path()+"/"+command, p.disk.running)
		if place.Dir != nil {
			defer place.Dir.Close()
			place.Dir.Step = p.step
		}
		m := p.memory(place.Dir)
		if m.Dir != nil {
			defer m.Dir.Close()
		}
		remembered := m.Read()
		p.step("ask", "")
		d := p.kernel.decide(remembered, guess)
		o := outcome{byKubelet: d.Conclusive && d.Reason.Kubelet()}
		o.binds = k == adding || k == deleting && (d.Conclusive || d.Reason == evidence.Remembered)
		d = Keep(Call{
			Decision: d, Remembered: remembered, Adds: k == adding, Changes: k != reading, Root: true, Own: true,
			Memory: m, Place: place,
		})
		p.step("become", "") // which releases the lock
		if place.Dir != nil {
			place.Dir.Close()
		}
		o.ran = d.Mode
		return p.runs(k, o)
	}}
}

// runs is the program of a backend.
func (p *process) runs(k kind, o outcome) outcome {
	if k == adding {
		p.step("write", string(o.ran))
	}
	return o
}

// command is one of the wrapper's own.
func command(name string, k kind, mode evidence.Mode, run func(p *process, x Directory) error) actor {
	return actor{name: name, kind: k, mode: mode, run: func(p *process) outcome {
		d := p.open(p.path())
		defer d.Close()
		m := p.memory(d)
		if m.Dir != nil {
			defer m.Dir.Close()
		}
		wrapper := p.path() + "/" + Wrapper
		err := run(p, Directory{Dir: d, Memory: m, Running: p.disk.running, Wrapper: wrapper})
		p.step("end", "")
		return outcome{err: err}
	}}
}

func selects(mode evidence.Mode) actor {
	selected := evidence.Decision{Mode: mode, Reason: evidence.Selected, Conclusive: true}
	return command("select "+string(mode), selecting, mode, func(_ *process, x Directory) error {
		return x.Select(selected, false)
	})
}

func selectsGuess(mode evidence.Mode) actor {
	return command("select --guess "+string(mode), guessing, mode, func(p *process, x Directory) error {
		remembered := x.Memory.Read()
		p.step("ask", "")
		d := p.kernel.decide(remembered, mode)
		if d.Reason == evidence.Remembered {
			d = remembered
		}
		return x.Select(d, !d.Conclusive)
	})
}

func appears(name string, k kind, mode evidence.Mode, does func(*kernel)) actor {
	return actor{name: name, kind: k, mode: mode, does: func(now kernel) kernel {
		does(&now)
		return now
	}}
}

var (
	callNFT    = call("call nft", "iptables", adding, evidence.NFT)
	callLegacy = call("call legacy", "ip6tables", adding, evidence.Legacy)
	deletes    = call("delete legacy", "iptables", deleting, evidence.Legacy)
	reads      = call("read legacy", "ip6tables-save", reading, evidence.Legacy)
	resets     = command("reset", resetting, "", func(_ *process, x Directory) error { return x.Reset() })

	selectNFT    = selects(evidence.NFT)
	selectLegacy = selects(evidence.Legacy)
	selectGuess  = selectsGuess(evidence.NFT)

	kubeletNFT    = appears("kubelet nft", kubelet, evidence.NFT, func(k *kernel) { k.kubelet = nft })
	kubeletLegacy = appears("kubelet legacy", kubelet, evidence.Legacy, func(k *kernel) { k.kubelet = legacy })
	hostLegacy    = appears("host program", hostProgram, evidence.Legacy, func(k *kernel) {
		k.program = legacy
		k.rules |= legacy
	})
)
