// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package histories plays random histories of a host and a container on it, with the real wrapper and the real programs
// of both backends, and compares each call with the oracle.
package histories

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	machine "github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// TestHistories plays the same histories each time, more with TEST_ALL; TEST_HISTORIES=N plays N that nobody has seen,
// TEST_SEED=N that one. A history that breaks a promise is shrunk.
func TestHistories(t *testing.T) {
	image := makeImage(t)
	var failed atomic.Int32
	for _, seed := range machine.Seeds(t, "TEST_HISTORIES", 16, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := random(seed)
			v := h.play(t, image, nil)
			if v != nil && failed.Add(1) <= 20 {
				short, v := h.shrunk(t, image, v, nil)
				t.Errorf("TEST_SEED=%d: %s\nafter %+v:\n%s", seed, v.text, short.place, short)
			}
		})
	}
}

// A wrapper that answers nft whatever it sees, and one that keeps nothing, are found out, in few events.
func TestHistoriesFind(t *testing.T) {
	image := makeImage(t)
	for _, lie := range [][]string{{"IPTABLES_WRAPPER_BACKEND=nft"}, {"DEV=host", "ROOT=ro"}} {
		var v *violation
		for seed := uint64(1); v == nil; seed++ {
			h := random(seed)
			v = h.play(t, image, lie)
			if v == nil && seed < 50 {
				continue
			}
			if v == nil {
				t.Fatalf("%v: not found", lie)
			}
			short, _ := h.shrunk(t, image, v, lie)
			if len(short.events) > 5 {
				t.Fatalf("%v: found in\n%s", lie, short)
			}
		}
	}
}

// makeImage returns a directory that is what an image has in /usr/sbin.
func makeImage(t *testing.T) string {
	t.Helper()
	machine.NeedsRoot(t, "make containers")
	machine.Needs(t, "strace", "nft", "xtables-nft-multi", "xtables-legacy-multi")
	wrapper, err := machine.Wrapper()
	machine.Check(t, err)
	image := filepath.Join(t.TempDir(), "image")
	machine.Run(t, "env", "IMAGE="+image, "IPTABLES_WRAPPER="+wrapper, "sh", "-ec", imageScript)
	return image
}

// play plays a history on a host of its own, and returns the first broken promise.
func (h history) play(t *testing.T, image string, lie []string) (v *violation) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine, and the network namespace with it
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			v, err = h.live(image, lie)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Errorf("%+v: %v\n%s", h.place, err, h)
	}
	return v
}

// live plays a history on this thread's host.
func (h history) live(image string, lie []string) (*violation, error) {
	dir, err := os.MkdirTemp(filepath.Dir(image), "history")
	if err != nil {
		return nil, err
	}
	defer exec.Command("rm", "-rf", "--one-file-system", dir).Run()
	p := player{world: newWorld(), kept: h.container()}
	p.life, err = h.begin(dir, image, lie)
	if err != nil {
		return nil, err
	}
	defer func() { p.life.end() }()
	for i, e := range h.events {
		if e.class == restarts {
			p.life.end()
			p.life, err = h.begin(dir, image, lie)
			p.kept = p.kept.Restart()
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		v, err := p.play(e)
		if v != nil {
			v.at = i
		}
		if v != nil || err != nil {
			return v, err
		}
	}
	return nil, nil
}

// shrunk returns a shorter history that breaks a promise, too. What depends on an instant is tried again.
func (h history) shrunk(t *testing.T, image string, v *violation, lie []string) (history, *violation) {
	short := h
	short.events = h.events[:v.at+1]
	for size := (len(short.events) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(short.events)-1; {
			other := short
			other.events = slices.Delete(slices.Clone(short.events), at, min(at+size, len(short.events)-1))
			again := other.play(t, image, lie)
			if again == nil {
				again = other.play(t, image, lie)
			}
			if again == nil {
				at += size
				continue
			}
			other.events, v = other.events[:again.at+1], again
			short = other
		}
	}
	return short, v
}

func (h history) String() string {
	var lines []string
	for _, e := range h.events {
		lines = append(lines, e.text())
	}
	return strings.Join(lines, "\n")
}
