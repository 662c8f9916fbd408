// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package histories plays random histories of a host and a container on it, with the real wrapper and the real programs of
// both backends, and compares each call with a small model of what is promised.
package histories

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// TestHistories plays the same fifty histories each time; TEST_HISTORIES=N plays N that nobody has seen, TEST_SEED=N that one.
// A history that breaks a promise is shrunk and printed as a script for test/script.
func TestHistories(t *testing.T) {
	image := makeImage(t)
	first, number := uint64(1), 50
	if s := os.Getenv("TEST_HISTORIES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("TEST_HISTORIES: %v", err)
		}
		first, number = host.Rand(t).Uint64()>>16, n
	} else if s := os.Getenv("TEST_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("TEST_SEED: %v", err)
		}
		first, number = seed, 1
	}
	seeds := make(chan uint64)
	var players sync.WaitGroup
	for range runtime.NumCPU() {
		players.Go(func() {
			for seed := range seeds {
				s, events := history(seed)
				if v := play(t, image, s, events, nil); v != nil {
					t.Errorf("TEST_SEED=%d: %s", seed, v.text)
					s, events, v = shrink(t, image, s, events, v)
					t.Logf("shrunk, a script for test/script:\n%s", script(seed, s, events, v))
				}
			}
		})
	}
	for i := range number {
		seeds <- first + uint64(i)
	}
	close(seeds)
	players.Wait()
}

// makeImage returns a directory that is what an image has in /usr/sbin.
func makeImage(t *testing.T) string {
	t.Helper()
	if unix.Geteuid() != 0 {
		host.Cannot(t, "make containers; run it as root")
	}
	wrapper := os.Getenv("IPTABLES_WRAPPER")
	if wrapper == "" {
		wrapper = filepath.Join(t.TempDir(), "iptables-wrapper")
		host.Run(t, "make", "-C", "../..", "build", "BINARY="+wrapper)
	}
	image := filepath.Join(t.TempDir(), "image")
	host.Run(t, "env", "IMAGE="+image, "IPTABLES_WRAPPER="+wrapper, "sh", "-ec", imageScript)
	return image
}

// play plays a history on a host of its own, and returns the first broken promise.
func play(t *testing.T, image string, s settings, events []event, env []string) (v *violation) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it ends with the goroutine, and the network namespace with it
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("a network namespace: %v", err)
			return
		}
		var err error
		if v, err = live(t, image, s, events, env); err != nil {
			t.Error(err)
		}
	}()
	<-done
	return v
}

// live plays a history on this thread's host.
func live(t *testing.T, image string, s settings, events []event, env []string) (*violation, error) {
	dir, err := os.MkdirTemp(filepath.Dir(image), "history")
	if err != nil {
		return nil, err
	}
	defer exec.Command("rm", "-rf", "--one-file-system", dir).Run()
	m := newModel(s)
	environment := append(s.environment(), env...)
	l, err := begin(dir, image, "none", environment)
	if err != nil {
		return nil, err
	}
	defer func() { l.end() }()
	var now kernel
	for i, e := range events {
		if e.class == restarts {
			l.end()
			time.Sleep(10 * time.Millisecond) // the kernel counts process 1's start in such steps
			if l, err = begin(dir, image, strings.TrimPrefix(e.command, ": "), environment); err != nil {
				return nil, err
			}
		}
		r, err := l.do(e.text())
		if err != nil {
			return nil, err
		}
		if v := m.judge(e, now, r); v != nil {
			v.at = i
			return v, nil
		}
		now = r.kernel
	}
	return nil, nil
}
