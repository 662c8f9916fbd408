// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
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
	if !errors.Is(first.Err, ErrHangs) || !errors.Is(second.Err, ErrHangs) {
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
	if !errors.Is(out.Err, exec.ErrWaitDelay) || s.Hangs != "" {
		t.Errorf("got %v, %v", out.Err, s.Hangs)
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
	const most = 2 * mostOutput // the last piece counts
	if out.Err != nil || len(out.Stdout) > most || len(out.Stderr) > most || len(out.Stdout) < mostOutput {
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
	if !errors.Is(out.Err, ErrRefused) || len(s.Refused) != 1 || !os.IsNotExist(err) {
		t.Errorf("got %v, %q, %v", out.Err, s.Refused, err)
	}
}
