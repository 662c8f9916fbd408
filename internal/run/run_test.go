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
	if first.Err == nil || errors.Is(first.Err, ErrRefused) || !errors.Is(second.Err, first.Err) {
		t.Errorf("got %v, then %v", first.Err, second.Err)
	}
}

// What a program prints without end does not fill the memory.
func TestMuch(t *testing.T) {
	var k kept
	piece := make([]byte, 1<<20)
	for range 2 * mostOutput / len(piece) {
		n, err := k.Write(piece)
		if n != len(piece) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if k.Len() != mostOutput {
		t.Errorf("kept %d bytes", k.Len())
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
