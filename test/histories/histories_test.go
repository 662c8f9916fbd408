// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package histories plays random histories of a host and a container on it, with the real wrapper and the real programs of
// both backends, and compares each call with a small model of what is promised.
package histories

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// TestHistories plays the same fifty histories each time; TEST_HISTORIES=N plays N that nobody has seen, TEST_SEED=N that one.
// A history that breaks a promise is shrunk and printed as a script for test/script.
func TestHistories(t *testing.T) {
	image := makeImage(t)
	first, number := uint64(1), uint64(50)
	if n, ok := variable(t, "TEST_HISTORIES"); ok {
		first, number = rand.Uint64()>>16, n
	} else if n, ok := variable(t, "TEST_SEED"); ok {
		first, number = n, 1
	}
	seeds := make(chan uint64)
	var players sync.WaitGroup
	var failed atomic.Int32
	for range runtime.NumCPU() {
		players.Go(func() {
			for seed := range seeds {
				h := random(seed)
				if v := h.play(t, image); v != nil {
					failed.Add(1)
					t.Errorf("TEST_SEED=%d: %s", seed, v.text)
					t.Logf("shrunk, a script for test/script:\n%s", h.shrunk(t, image, v).script(seed))
				}
			}
		})
	}
	for seed := first; seed < first+number && failed.Load() < 20; seed++ {
		seeds <- seed
	}
	close(seeds)
	players.Wait()
}

func variable(t *testing.T, name string) (n uint64, ok bool) {
	if s := os.Getenv(name); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n, true
	}
	return 0, false
}

// A wrapper that answers nft whatever it sees, and one that remembers nothing, are found out, in few events.
func TestHistoriesFind(t *testing.T) {
	image := makeImage(t)
	for _, lie := range [][]string{{"IPTABLES_WRAPPER_MODE=nft"}, {"DEV=host", "SHM=absent", "RUN=ro", "ROOT=ro"}} {
		var v *violation
		for seed := uint64(1); v == nil; seed++ {
			h := random(seed)
			h.lie = lie
			if v = h.play(t, image); v != nil && len(h.shrunk(t, image, v).events) > 6 || seed == 50 {
				t.Fatalf("%v: not found, or not in few events: %v", lie, v)
			}
		}
	}
}

// makeImage returns a directory that is what an image has in /usr/sbin.
func makeImage(t *testing.T) string {
	t.Helper()
	if unix.Geteuid() != 0 {
		host.Cannot(t, "make containers; run it as root")
	}
	wrapper := os.Getenv("IPTABLES_WRAPPER")
	if wrapper == "" {
		// The result depends on these files, which "go test" notices only if the test looks at them.
		for _, pattern := range []string{"../../*.go", "../../*/*.go", "../../internal/*/*.go", "../../go.mod"} {
			if _, err := filepath.Glob(pattern); err != nil {
				t.Fatal(err)
			}
		}
		wrapper = filepath.Join(t.TempDir(), "iptables-wrapper")
		host.Run(t, "make", "-C", "../..", "build", "BINARY="+wrapper)
	}
	image := filepath.Join(t.TempDir(), "image")
	host.Run(t, "env", "IMAGE="+image, "IPTABLES_WRAPPER="+wrapper, "sh", "-ec", imageScript)
	return image
}

// play plays a history on a host of its own, and returns the first broken promise.
func (h *history) play(t *testing.T, image string) (v *violation) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it ends with the goroutine, and the network namespace with it
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			v, err = h.live(image)
		}
		if err != nil {
			t.Errorf("%v: %v", h.settings, err)
		}
	}()
	<-done
	return v
}

// live plays a history on this thread's host.
func (h *history) live(image string) (*violation, error) {
	dir, err := os.MkdirTemp(filepath.Dir(image), "history")
	if err != nil {
		return nil, err
	}
	defer exec.Command("rm", "-rf", "--one-file-system", dir).Run()
	m := &model{settings: h.settings, worlds: []world{{}}}
	environment := append(h.environment(), h.lie...)
	l, err := begin(dir, image, "none", environment)
	if err != nil {
		return nil, err
	}
	defer func() { l.end() }()
	var before kernel
	for i, e := range h.events {
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
		if v := m.judge(e, before, r); v != nil {
			v.at, v.outcome = i, r.outcome
			return v, nil
		}
		before = r.kernel
	}
	return nil, nil
}
