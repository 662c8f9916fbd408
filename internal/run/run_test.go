// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A program that hangs is killed, with what it has started, and no other one is started then.
func TestHangs(t *testing.T) {
	directory := t.TempDir()
	program, fifo := directory+"/program", directory+"/fifo"
	host.Check(t, unix.Mkfifo(fifo, 0o600))
	running, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	host.Check(t, err)
	defer running.Close()
	host.Check(t, os.WriteFile(program, []byte("#!/bin/sh\nsleep 1000 >"+fifo+" & wait\n"), 0o755))
	host.Check(t, os.Chmod(program, 0o755))
	s := Starter{Limit: 100 * time.Millisecond}
	first := s.Run(program, detect.NFT, "iptables")
	second := s.Run("/bin/true", detect.NFT, "true")
	if !errors.Is(first.Err, ErrEndless) || !errors.Is(second.Err, ErrNotStarted) {
		t.Errorf("got %v, then %v", first.Err, second.Err)
	}
	_, err = io.ReadAll(running) // ends with the last writer
	host.Check(t, err)
}

// A process that a program leaves behind, with its output, keeps nobody waiting.
func TestLeftBehind(t *testing.T) {
	s := Starter{Limit: time.Hour}
	out := s.Run("/bin/sh", detect.NFT, "sh", "-c", "sleep 1000 & echo $!")
	left, err := strconv.Atoi(strings.TrimSpace(out.Stdout))
	host.Check(t, err)
	host.Check(t, unix.Kill(left, unix.SIGKILL))
	if out.Err != nil || s.Endless {
		t.Errorf("got %v, %v", out.Err, s.Endless)
	}
}

// A program that did not end says how much processor time it used, so that what hangs is told from what needs long.
func TestUsed(t *testing.T) {
	for script, isBusy := range map[string]bool{"while :; do :; done": true, "exec sleep 1000": false} {
		s := Starter{Limit: time.Second}
		out := s.Run("/bin/sh", detect.NFT, "sh", "-c", script)
		const idle = 100 * time.Millisecond
		if !errors.Is(out.Err, ErrEndless) || (out.Used > idle) != isBusy {
			t.Errorf("%s: %v, used %v", script, out.Err, out.Used)
		}
	}
}

// Told to end, it ends what it has started, and then by the same signal.
func TestTold(t *testing.T) {
	if os.Getenv("RUN_FIFO") != "" {
		s := Starter{Limit: time.Hour}
		s.Run("/bin/sh", detect.NFT, "sh", "-c", "sleep 1000 >$RUN_FIFO & echo >$RUN_FIFO; wait")
		t.Fatal("not ended")
	}
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		fifo := t.TempDir() + "/fifo"
		host.Check(t, unix.Mkfifo(fifo, 0o600))
		running, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
		host.Check(t, err)
		defer running.Close()
		cmd := exec.Command(os.Args[0], "-test.run=^TestTold$")
		cmd.Env = append(os.Environ(), "RUN_FIFO="+fifo)
		host.Check(t, cmd.Start())
		begun := make([]byte, 1)
		host.Check(t, unix.SetNonblock(int(running.Fd()), false))
		for n := 0; n == 0; n, _ = running.Read(begun) { // until somebody writes
		}
		host.Check(t, cmd.Process.Signal(signal))
		_ = cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signal() != signal {
			t.Errorf("ended by %v, want %v", status.Signal(), signal)
		}
		_, err = io.ReadAll(running) // ends with the last writer
		host.Check(t, err)
	}
}

// Lines that begin as they must are kept, however late they come, and nothing else.
func TestKept(t *testing.T) {
	s := Starter{Limit: time.Hour, Keep: "# "}
	out := s.Run("/bin/sh", "", "sh", "-c", "head -c 100000 /dev/zero; printf '\n# one\nno # two\n# three\n# four'")
	if want := []string{"# one", "# three"}; !slices.Equal(out.Kept, want) {
		t.Errorf("got %q, want %q", out.Kept, want)
	}
}

func TestEnvironment(t *testing.T) {
	s := Starter{Limit: time.Hour, Env: []string{"LC_ALL=C"}}
	out := s.Run("/usr/bin/env", detect.Legacy, "env")
	if out.Err != nil || out.Stdout != "LC_ALL=C\nIPTABLES_WRAPPER_BACKEND=legacy\n" {
		t.Errorf("got %q, %v", out.Stdout, out.Err)
	}
}

// What a program prints without end does not fill the memory.
func TestMuch(t *testing.T) {
	s := Starter{Limit: time.Hour}
	out := s.Run("/bin/sh", "", "sh", "-c", "head -c 100000000 /dev/zero; head -c 100000000 /dev/zero >&2")
	if out.Err != nil || len(out.Stdout) != mostOutput || len(out.Stderr) != mostOutput {
		t.Errorf("%v: kept %d and %d bytes", out.Err, len(out.Stdout), len(out.Stderr))
	}
}

// A program that another user could replace is not started.
func TestRefused(t *testing.T) {
	directory := t.TempDir()
	program := directory + "/program"
	host.Check(t, os.WriteFile(program, []byte("#!/bin/sh\ntouch "+directory+"/started\n"), 0o755))
	host.Check(t, os.Chmod(program, 0o757))
	var s Starter
	out := s.Run(program, detect.NFT, "iptables")
	s.Run(program, detect.Legacy, "iptables") // the reason is kept once
	_, err := os.Stat(directory + "/started")
	if !errors.Is(out.Err, file.ErrExposed) || !slices.Equal(s.Exposed, []string{program}) || !os.IsNotExist(err) {
		t.Errorf("got %v, %q, %v", out.Err, s.Exposed, err)
	}
}
