// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// After a program that does not end, no other one is started.
func TestHangs(t *testing.T) {
	program := t.TempDir() + "/program"
	host.Check(t, os.WriteFile(program, []byte("#!/bin/sh\nsleep 1000 & wait\n"), 0o755))
	host.Check(t, os.Chmod(program, 0o755))
	s := Starter{Limit: time.Millisecond}
	first := s.Run(program, detect.NFT, "iptables")
	second := s.Run("/bin/true", detect.NFT, "true")
	if !errors.Is(first.Err, ErrHangs) || !errors.Is(second.Err, ErrHangs) {
		t.Errorf("got %v, then %v", first.Err, second.Err)
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
	_, err := os.Stat(directory + "/started")
	if !errors.Is(out.Err, ErrRefused) || len(s.Refused) != 1 || !os.IsNotExist(err) {
		t.Errorf("got %v, %q, %v", out.Err, s.Refused, err)
	}
}
