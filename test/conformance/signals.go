// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func deathBySignal(c *container) string {
	c.sh(plainHost)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGKILL, unix.SIGQUIT, unix.SIGUSR1, unix.SIGPIPE} {
		r, wrong := c.reading()
		if wrong != "" {
			return wrong
		}
		if err := r.cmd.Process.Signal(signal); err != nil {
			fail(err)
		}
		err := r.cmd.Wait()
		if ws := r.cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != signal {
			return fmt.Sprintf("%v: %v", unix.SignalName(signal), err)
		}
	}
	return "the caller sees each of them"
}

// terminated sends SIGTERM to first calls of iptables-restore, each a little later than the one before, from the start to
// when the program waits for its standard input.
//
// That an ignored signal does nothing at any instant is not examined: in a program written in Go it ends the process while
// the runtime starts, for some 0.1 ms.
func terminated(c *container) string {
	c.sh(plainHost)
	for i := range 60 {
		if err := c.lay(); err != nil {
			fail(err)
		}
		cmd := call{args: []string{"iptables-restore"}}.command(true)
		cmd.Stdin = nil
		if _, err := cmd.StdinPipe(); err != nil { // nothing is ever written to it
			fail(err)
		}
		if err := cmd.Start(); err != nil {
			fail(err)
		}
		time.Sleep(time.Duration(i) * 50 * time.Microsecond)
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			return "it ended before"
		}
		err := cmd.Wait()
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != unix.SIGTERM {
			return fmt.Sprintf("it ends with: %v", err)
		}
	}
	return "it ends by it"
}

// parentDeath ends a shell whose child is iptables-restore and has asked to be told. It is done some times, because with
// several threads it depends on which one calls execve.
func parentDeath(c *container) string {
	c.sh(plainHost)
	for range 5 {
		if err := c.lay(); err != nil {
			fail(err)
		}
		stdin, hold, err := os.Pipe()
		if err != nil {
			fail(err)
		}
		parent := exec.Command("sh", "-c", `setpriv --pdeathsig TERM iptables-restore <&3 & echo $!; wait`)
		parent.ExtraFiles = []*os.File{stdin}
		out, err := parent.StdoutPipe()
		if err != nil {
			fail(err)
		}
		if err := parent.Start(); err != nil {
			fail(err)
		}
		stdin.Close()
		var pid int
		if _, err := fmt.Fscanln(out, &pid); err != nil {
			fail(err)
		}
		child, wrong := waitFor(pid)
		if wrong == "" {
			_ = parent.Process.Kill()
			if !child.gone() {
				wrong = "it lives on"
			}
		}
		hold.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = parent.Wait()
		if wrong != "" {
			return wrong
		}
	}
	return "it dies too"
}
