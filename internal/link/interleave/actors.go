// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package interleave

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/choose"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// actor is a process.
type actor struct {
	name    string
	kind    kind
	backend detect.Backend           // of which it is
	run     func(p *process) outcome // nil for what happens at one instant
	does    func(k kernel) kernel    // that
}

type kind int

const (
	calling kind = iota
	selecting
	resetting
	appearing
)

// outcome is how a process ended.
type outcome struct {
	ran     detect.Backend // "" if it is no call
	certain bool           // by a name that the call has seen itself
	err     error
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
	record   bool // there is a place for one
	readOnly bool // DIR
	locked   bool // another user holds the lock
}

// path is that of DIR.
func (p *process) path() string {
	if p.place.readOnly {
		return p.disk.readOnly
	}
	return p.disk.commands
}

func (p *process) open() *link.Dir {
	d, err := link.Open(p.path())
	if err != nil {
		p.disk.tb.Error(err)
		return nil
	}
	d.Step = p.step
	return d
}

func (p *process) record() link.Record {
	if !p.place.record {
		return link.Record{}
	}
	r, err := link.OpenRecord()
	if err != nil {
		p.disk.tb.Error(err)
		return link.Record{}
	}
	r.Dev.Step = p.step
	return r
}

// call is a wrapped call of one of the six commands, as internal/call makes it.
func call(name, command string, guess detect.Backend) actor {
	return actor{name: name, kind: calling, backend: guess, run: func(p *process) outcome {
		p.step("execve", command)
		end, err := filepath.EvalSymlinks(p.disk.commands + "/" + command)
		if err != nil {
			return outcome{err: err}
		}
		file := filepath.Base(end)
		stored := iptables.BackendOf(file)
		if stored != "" {
			return outcome{ran: detect.Backend(stored)} // the wrapper is not run at all
		}
		here := p.here(file)
		if here != nil {
			defer here.Close()
		}
		record := p.record()
		if record.Dev != nil {
			defer record.Dev.Close()
		}
		held := record.Read()
		p.step("ask", "")
		backend, certain := p.kernel.decide(held, guess)
		if !certain && held != "" {
			p.step("become", "")
			return outcome{ran: held}
		}
		program := p.path() + "/" + iptables.MultiCall(string(backend))
		ran := link.Keep(here, record, backend, program, certain)
		p.step("become", "") // the deferred calls close what execve(2) would, and so release the lock
		return outcome{ran: ran, certain: certain}
	}}
}

// here is link.OpenRunning, for a running file of the disk: there is no DIR if another call has adopted the file
// meanwhile, because then the kernel shows its name as deleted.
func (p *process) here(file string) *link.Dir {
	p.step("here", file)
	var st unix.Stat_t
	err := unix.Lstat(p.disk.commands+"/"+file, &st)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	d := p.open()
	d.Running = file
	d.Exe = p.disk.file
	return d
}

// command is one of the wrapper's own.
func command(name string, k kind, backend detect.Backend, run func(p *process, d *link.Dir) error) actor {
	return actor{name: name, kind: k, backend: backend, run: func(p *process) outcome {
		d := p.open()
		defer d.Close()
		err := run(p, d)
		p.step("end", "")
		return outcome{err: err}
	}}
}

func selects(backend detect.Backend) actor {
	return command("select "+string(backend), selecting, backend, func(p *process, d *link.Dir) error {
		return choose.Select(d, backend, p.path()+"/"+iptables.MultiCall(string(backend)))
	})
}

func appears(name string, backend detect.Backend, does func(*kernel)) actor {
	return actor{name: name, kind: appearing, backend: backend, does: func(now kernel) kernel {
		does(&now)
		return now
	}}
}

var (
	callNFT    = call("call nft", "iptables", detect.NFT)
	callLegacy = call("call legacy", "ip6tables", detect.Legacy)

	selectNFT    = selects(detect.NFT)
	selectLegacy = selects(detect.Legacy)
	resets       = command("reset", resetting, "", func(p *process, d *link.Dir) error {
		record := p.record()
		if record.Dev != nil {
			defer record.Dev.Close()
		}
		return choose.Reset(record, d)
	})

	hintLegacy    = appears("kubelet's hint in legacy", detect.Legacy, func(k *kernel) { k.hint |= legacy })
	programNFT    = appears("a program's chain in nft", detect.NFT, func(k *kernel) { k.program |= nft })
	programLegacy = appears("a program's chain in legacy", detect.Legacy, func(k *kernel) { k.program |= legacy })
)
