// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signals is whether they reach the program, and whether the caller learns of what they do.
func signals() []situation {
	list := []situation{
		{name: "the process that was called is the program", want: "the same process", run: func(c *container) string {
			r, wrong := c.reading()
			if wrong != "" {
				return wrong
			}
			defer r.end()
			if r.pid != r.called {
				return "another process is the program"
			}
			return "the same process"
		}},
		{name: "one that is sent to the process that was called", want: "ends the program",
			run: func(c *container) string {
				return c.killing("ends the program", func(r running) int { return r.called })
			}},
		{name: "the program dies of one", want: "the caller sees each of them", run: func(c *container) string {
			return c.killing("the caller sees each of them", func(r running) int { return r.pid })
		}},
		{name: "SIGTERM at any instant of a first call", want: "it ends by it", run: terminated},
		{name: "its parent dies (PR_SET_PDEATHSIG)", want: "it dies too", run: parentDeath},
	}
	for i := range list {
		list[i].group = "signal"
	}
	return list
}

// reading makes a first call of iptables-restore, and returns when the program behind it reads.
func (c *container) reading() (running, string) {
	c.sh(`case "$(saved nft -)" in *HINT*) ;; *) ` + plainHost + ` ;; esac`)
	if err := c.lay(); err != nil {
		fail(err)
	}
	return c.start(call{args: []string{"iptables-restore"}}.command(true))
}

// killing sends signals to one of the processes. The program must end, and the caller must see by which signal.
func (c *container) killing(good string, whom func(running) int) string {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGKILL, unix.SIGQUIT,
		unix.SIGUSR1, unix.SIGPIPE} {
		r, wrong := c.reading()
		if wrong != "" {
			return wrong
		}
		if err := unix.Kill(whom(r), signal); err != nil {
			fail(err)
		}
		err := r.cmd.Wait()
		if ws := r.cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != signal {
			return fmt.Sprintf("%v: %v", unix.SignalName(signal), err)
		}
		if !ends(r.pid) {
			return unix.SignalName(signal) + ": the program lives on"
		}
	}
	return good
}

// terminated sends SIGTERM to first calls of iptables-restore, each a little later than the one before, from the start
// to when the program waits for its standard input.
//
// That an ignored signal does nothing at any instant is not examined: in a program written in Go it ends the process
// while the runtime starts, for some 0.1 ms.
func terminated(c *container) string {
	r, wrong := c.reading() // which makes the file that nobody writes to
	if wrong != "" {
		return wrong
	}
	r.end()
	for i := range 24 {
		if err := c.lay(); err != nil {
			fail(err)
		}
		cmd := call{args: []string{"iptables-restore", c.fifo()}}.command(true)
		if err := cmd.Start(); err != nil {
			fail(err)
		}
		time.Sleep(time.Duration(i) * 125 * time.Microsecond)
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			return "it ended before"
		}
		if !ends(cmd.Process.Pid) {
			return "it lives on"
		}
		err := cmd.Wait()
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != unix.SIGTERM {
			return fmt.Sprintf("it ends with: %v", err)
		}
	}
	return "it ends by it"
}

// parentDeath ends a shell whose child is iptables-restore and has asked to be told. It is done some times, because
// with several threads it depends on which one calls execve.
func parentDeath(c *container) string {
	r, wrong := c.reading()
	if wrong != "" {
		return wrong
	}
	r.end()
	for range 5 {
		if err := c.lay(); err != nil {
			fail(err)
		}
		parent := exec.Command("sh", "-c", `setpriv --pdeathsig TERM iptables-restore "$0" & echo $!; wait`, c.fifo())
		out, err := parent.StdoutPipe()
		if err != nil {
			fail(err)
		}
		if err := parent.Start(); err != nil {
			fail(err)
		}
		var pid int
		if _, err := fmt.Fscanln(out, &pid); err != nil {
			fail(err)
		}
		child, wrong := c.waitFor(pid)
		_ = parent.Process.Kill()
		_ = parent.Wait()
		if wrong == "" && !ends(child.pid) {
			wrong = "it lives on"
		}
		if wrong != "" {
			return wrong
		}
	}
	return "it dies too"
}
