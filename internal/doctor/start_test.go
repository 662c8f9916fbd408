// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// script makes a program that prints a line.
func script(t *testing.T, path, line string) {
	t.Helper()
	host.Check(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+line+"'\n"), 0o755))
}

// Whoever exchanges a link after doctor has looked at where it leads does not get another program started.
func TestStartRunsWhatWasLookedAt(t *testing.T) {
	dir := t.TempDir()
	script(t, filepath.Join(dir, "looked-at"), "looked at")
	script(t, filepath.Join(dir, "other"), "other")
	link := filepath.Join(dir, "link")
	host.Check(t, os.Symlink("looked-at", link))
	exchanges := 0
	files := tree.Tree{Step: func(_, _ string) error {
		exchanges++
		host.Check(t, os.Remove(link))
		return os.Symlink("other", link)
	}}
	var r Report
	stdout, _, err := r.start(files, link, "iptables")
	if stdout != "looked at\n" || err != nil || exchanges != 1 {
		t.Errorf("got %q, %v, after %d exchanges", stdout, err, exchanges)
	}
}

// A program that appears in front of the one that was found is not started.
func TestProgramIsFoundOnce(t *testing.T) {
	const version = "iptables v1.8.9 (nf_tables)"
	dir := t.TempDir()
	for _, name := range programs.Names() {
		script(t, filepath.Join(dir, programs.Single(detect.NFT, name)), version)
	}
	var started []string
	n := layout.Names{Tree: tree.Tree{Step: func(_, path string) error {
		started = append(started, filepath.Base(path))
		script(t, filepath.Join(dir, programs.MultiCall(detect.NFT)), "of somebody else")
		return nil
	}}}
	var r Report
	p := r.program(n, dir, detect.NFT)
	if filepath.Base(p.Path) != "iptables-nft" || p.Version != version || p.Error != "" {
		t.Errorf("got %+v", p)
	}
	if strings.Join(started, " ") != "iptables-nft iptables-nft" {
		t.Errorf("started %q", started)
	}
}

// To ask a program, doctor sets the variable. What it finds out after that is by the variable that it was called with.
func TestAskLeavesTheVariable(t *testing.T) {
	t.Setenv(programs.ModeVariable, "nft")
	program := filepath.Join(t.TempDir(), "program")
	script(t, program, "iptables v1.8.9 (legacy)")
	var r Report
	says, err := r.ask(tree.Tree{}, program)
	if says.backend != detect.Legacy || err != nil {
		t.Errorf("got %+v, %v", says, err)
	}
	mode, bad := variable()
	if mode != detect.NFT || bad != "" {
		t.Errorf("the variable is %q now, %q", mode, bad)
	}
}

// What others can change is not started, and reported.
func TestStartRefuses(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	script(t, program, "started")
	host.Check(t, os.Chmod(program, 0o757))
	var r Report
	stdout, _, err := r.start(tree.Tree{}, program, "iptables")
	if stdout != "" || !errors.Is(err, errReplaceable) {
		t.Errorf("got %q, %v", stdout, err)
	}
	want := exposure{program, program}
	if len(r.unstarted) != 1 || r.unstarted[0] != want {
		t.Errorf("got %v, want %v", r.unstarted, want)
	}
}
