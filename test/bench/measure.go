// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// saveRuns is how often four saves are made. With many rules they take seconds.
const saveRuns = 5

// sample is what a call cost: medians, and the middle half of the wall times. Times are in milliseconds. More is the
// difference to the direct call of the same round, and Floor the floor's: a machine that is slow for a while is slow for
// all three.
type sample struct {
	Wall, Low, High         float64
	More, MoreLow, MoreHigh float64 `json:",omitzero"`
	Floor                   float64 `json:",omitzero"`
	CPU                     float64 // user and system
	Faults                  float64 // of pages, none of which was read from a disk
}

// cost is one call.
type cost struct {
	wall, cpu time.Duration
	faults    int64
}

func (c cost) plus(d cost) cost { return cost{c.wall + d.wall, c.cpu + d.cpu, c.faults + d.faults} }

func summary(costs []cost) sample {
	each := func(value func(cost) float64) []float64 {
		var values []float64
		for _, c := range costs {
			values = append(values, value(c))
		}
		slices.Sort(values)
		return values
	}
	n := len(costs)
	if n == 0 {
		return sample{}
	}
	walls := each(wall)
	return sample{
		Wall: walls[n/2], Low: walls[n/4], High: walls[n-1-n/4],
		CPU:    each(func(c cost) float64 { return c.cpu.Seconds() * 1e3 })[n/2],
		Faults: each(func(c cost) float64 { return float64(c.faults) })[n/2],
	}
}

func wall(c cost) float64 { return c.wall.Seconds() * 1e3 }

// compared is the summary of calls that were made in turns with the direct call and the floor.
func compared(costs, directs, floors []cost) sample {
	s := summary(costs)
	if len(costs) == 0 {
		return s
	}
	more := func(costs []cost) sample {
		differences := slices.Clone(costs)
		for i := range differences {
			differences[i].wall -= directs[i].wall
		}
		return summary(differences)
	}
	m := more(costs)
	s.More, s.MoreLow, s.MoreHigh, s.Floor = m.Wall, m.Low, m.High, more(floors).Wall
	return s
}

// call starts a program, argv[0] being the name it is called by, and waits for its end: by two system calls, because what
// os/exec does besides would run at the same time. All three of its descriptors are null.
func call(null *os.File, path string, argv ...string) (cost, error) {
	fd := null.Fd()
	start := time.Now()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: []string{"PATH=/usr/sbin"}, Files: []uintptr{fd, fd, fd},
	})
	if err != nil {
		return cost{}, &os.PathError{Op: "start", Path: path, Err: err}
	}
	var status syscall.WaitStatus
	var usage syscall.Rusage
	for {
		if _, err = syscall.Wait4(pid, &status, 0, &usage); err != syscall.EINTR {
			break
		}
	}
	wall := time.Since(start)
	if err != nil || status != 0 {
		return cost{}, fmt.Errorf("%s as %v: status %#x, %v", path, argv, status, err)
	}
	return cost{wall, time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), usage.Minflt}, nil
}

// measure makes the host and measures, in turns: direct, wrapped, floor, direct, wrapped, floor.
func measure(s state, layer string, runs int) (m measurement, err error) {
	m.State = s
	if err := makeHost(s); err != nil {
		return m, err
	}
	if err := place(layer); err != nil {
		return m, err
	}
	if err := reset(); err != nil {
		return m, err
	}
	program := "/usr/sbin/xtables-" + s.Mode + "-multi"
	if err := m.takeMemory(program); err != nil { // first, while this process is small
		return m, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return m, err
	}
	defer null.Close()
	as := func(path string) func() (cost, error) {
		return func() (cost, error) { return call(null, path, "iptables", "--version") }
	}
	var directs, firsts, readOnlys, remembereds, addings, directAddings, noCLIs, befores, floors, saves []cost
	type step struct {
		to *[]cost
		f  func() (cost, error)
	}
	direct := step{&directs, as(program)}
	floor := step{&floors, func() (cost, error) { return call(null, "/usr/sbin/floor", "floor", program, "iptables", "--version") }}
	takeAll := func(steps ...step) error {
		for _, step := range steps {
			c, err := step.f()
			if err != nil {
				return err
			}
			*step.to = append(*step.to, c)
		}
		return nil
	}

	// Links repointed.
	for range runs {
		if err := reset(); err != nil {
			return m, err
		}
		if err := takeAll(direct, step{&firsts, as("/usr/sbin/iptables")}, floor); err != nil {
			return m, err
		}
		if s.Hint || s.Rules > 0 {
			if target, err := os.Readlink("/usr/sbin/iptables-current"); err != nil || target != filepath.Base(program) {
				return m, fmt.Errorf("the first call did not move the switch: %q, %v", target, err)
			}
		}
	}
	if err := count(&m, program); err != nil {
		return m, err
	}
	// Read-only.
	if err := reset(); err != nil {
		return m, err
	}
	if err := run("mount", "-o", "remount,bind,ro", "/usr/sbin"); err != nil {
		return m, err
	}
	// What a call remembers would help the next.
	afresh := func(to *[]cost, path string, argv ...string) step {
		return step{to, func() (cost, error) {
			if err := forget(); err != nil {
				return cost{}, err
			}
			return call(null, path, argv...)
		}}
	}
	version := []string{"iptables", "--version"}
	steps := []step{
		direct, afresh(&readOnlys, "/usr/sbin/iptables", version...), afresh(&noCLIs, "/usr/sbin/no-cli/iptables", version...), floor,
	}
	if _, err := os.Stat("/usr/sbin/before"); err == nil {
		steps = append(steps, afresh(&befores, "/usr/sbin/before/iptables", version...))
	}
	if adding := []string{"iptables", "-w", "-P", "INPUT", "ACCEPT"}; s == (state{Mode: "nft"}) {
		steps = append(steps, afresh(&directAddings, program, adding...), afresh(&addings, "/usr/sbin/iptables", adding...))
	}
	for range runs {
		if err := takeAll(steps...); err != nil {
			return m, err
		}
	}
	// A conclusive answer makes a memory; where there is none, a call that can add something does.
	if _, err := call(null, "/usr/sbin/iptables", "iptables", "-w", "-P", "INPUT", "ACCEPT"); err != nil {
		return m, err
	}
	if memories, _ := filepath.Glob("/dev/shm/iptables-wrapper.*"); len(memories) != 1 {
		return m, fmt.Errorf("there is no memory: %q", memories)
	}
	for range runs {
		if err := takeAll(direct, step{&remembereds, as("/usr/sbin/iptables")}, floor); err != nil {
			return m, err
		}
	}
	for range min(runs, saveRuns) {
		var sum cost
		for _, name := range saveNames {
			c, err := call(null, "/usr/sbin/"+name, name)
			if err != nil {
				return m, err
			}
			sum = sum.plus(c)
		}
		saves = append(saves, sum)
	}
	m.Direct, m.Floor, m.FourSaves = summary(directs), compared(floors, directs, floors), summary(saves)
	m.First = compared(firsts, directs[:runs], floors[:runs])
	directs, floors = directs[runs:], floors[runs:]
	m.ReadOnly, m.NoCLI, m.Before = compared(readOnlys, directs, floors), compared(noCLIs, directs, floors), compared(befores, directs, floors)
	m.Remembered = compared(remembereds, directs[runs:], floors[runs:])
	m.Adding, m.DirectAdding = summary(addings), summary(directAddings)
	m.Inits, err = traceInits(program, runs)
	return m, err
}
