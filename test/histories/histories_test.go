// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package histories plays random histories of a host and a container on it, with the real wrapper and the real programs
// of both backends, and compares each call with a small model of what is promised.
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
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// TestHistories plays the same histories each time, more with TEST_ALL; TEST_HISTORIES=N plays N that nobody has seen,
// TEST_SEED=N that one. A history that breaks a promise is shrunk and printed as a script for test/script.
func TestHistories(t *testing.T) {
	image := makeImage(t)
	var failed atomic.Int32
	for _, seed := range host.Seeds(t, "TEST_HISTORIES") {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := random(seed)
			if v := h.play(t, image); v != nil && failed.Add(1) <= 20 {
				t.Errorf("TEST_SEED=%d: %s\nshrunk, a script for test/script:\n%s", seed, v.text,
					h.shrunk(t, image, v).script(seed))
			}
		})
	}
}

// A wrapper that answers nft whatever it sees, and one that remembers nothing, are found out, in few events.
func TestHistoriesFind(t *testing.T) {
	image := makeImage(t)
	for _, lie := range [][]string{{"IPTABLES_WRAPPER_MODE=nft"}, {"DEV=host", "SHM=absent", "RUN=ro", "ROOT=ro"}} {
		var v *violation
		for seed := uint64(1); v == nil; seed++ {
			h := random(seed)
			h.lie = lie
			v = h.play(t, image)
			if v != nil && len(h.shrunk(t, image, v).events) > 6 || seed == 50 {
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
	wrapper, err := host.Wrapper()
	host.Check(t, err)
	image := filepath.Join(t.TempDir(), "image")
	host.Run(t, "env", "IMAGE="+image, "IPTABLES_WRAPPER="+wrapper, "sh", "-ec", imageScript)
	return image
}

// play plays a history on a host of its own, and returns the first broken promise.
func (h *history) play(t *testing.T, image string) (v *violation) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine, and the network namespace with it
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			v, err = h.live(image)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Errorf("%v: %v", h.settings, err)
	}
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
			l, err = begin(dir, image, strings.TrimPrefix(e.command, ": "), environment)
			if err != nil {
				return nil, err
			}
		}
		r, err := l.do(e.text())
		if err != nil {
			return nil, err
		}
		if v := m.judge(e, before, r); v != nil {
			v.at = i
			v.outcome, err = l.outcome()
			return v, err
		}
		before = r.kernel
	}
	return nil, nil
}

// shrunk returns a shorter history in a plainer setting that breaks a promise, too. What depends on an instant is tried
// again.
func (h *history) shrunk(t *testing.T, image string, v *violation) *history {
	short := *h
	short.events, short.broken = h.events[:v.at+1], v
	try := func(other history) bool {
		for range 2 {
			if v := other.play(t, image); v != nil {
				other.events, other.broken = other.events[:v.at+1], v
				short = other
				return true
			}
		}
		return false
	}
	for size := (len(short.events) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(short.events)-1; {
			other := short
			other.events = slices.Delete(slices.Clone(short.events), at, min(at+size, len(short.events)-1))
			if !try(other) {
				at += size
			}
		}
	}
	for _, plainer := range []func(*settings){
		func(s *settings) { s.Shm = "sticky" }, func(s *settings) { s.Run = "rw" }, func(s *settings) { s.Dev = "own" },
		func(s *settings) { s.Group = 0 }, func(s *settings) { s.Init = 0 }, func(s *settings) { s.Root = "rw" },
	} {
		other := short
		plainer(&other.settings)
		if other.settings != short.settings {
			try(other)
		}
	}
	return &short
}

// script is a history as a script for test/script, which fails as the history does.
func (h *history) script(seed uint64) string {
	v := h.broken
	var head, lives strings.Builder
	fmt.Fprintf(&head, "# A random history (TEST_SEED=%d): %s\n", seed,
		strings.TrimSpace(strings.ReplaceAll(v.text, "\n", "\n# ")))
	fmt.Fprintf(&head, "env %s H=$WORK/h IMAGE=$WORK/image IPTABLES_WRAPPER=/usr/sbin/iptables-wrapper\n",
		strings.Join(h.environment(), " "))
	head.WriteString("mkdir h\nexec sh -e image.sh\n")
	number := 0
	life := func(fresh string) {
		number++
		fmt.Fprintf(&head, "env NEW=%s\nstdin life%d\nexec sh -e container.sh\n", fresh, number)
		fmt.Fprintf(&lives, "-- life%d --\n. \"$H/../prelude.sh\"\n", number)
	}
	life("none")
	for i, e := range h.events {
		switch {
		case e.class == restarts:
			life(strings.TrimPrefix(e.command, ": "))
		case i == v.at:
			fmt.Fprintf(&lives, "{ %s\n} >\"$H/out\" 2>\"$H/err\" </dev/null && ran=0 || ran=$?\nlook\noutcome\n! "+
				"cmp \"$H/outcome\" \"$H/../outcome\" # that was wrong\n", e.text())
		default:
			fmt.Fprintf(&lives, "%s </dev/null\n", e.text())
		}
	}
	for name, content := range map[string]string{"image.sh": imageScript, "container.sh": containerScript,
		"prelude.sh": preludeScript, "outcome": v.outcome + "\n"} {
		fmt.Fprintf(&lives, "-- %s --\n%s", name, content)
	}
	return head.String() + lives.String()
}
