// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Set-user-ID, the memory is not even read.
func TestMemoryIsNotForPrivileged(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	h.link("legacy", "/dev/shm/"+memoryName)
	if got := h.memory(); got != detect.Legacy {
		t.Fatalf("got %q", got)
	}
	if h.w.setID = true; h.memory() != "" {
		t.Error("it is believed")
	}
}

// Only kubelet's chains change what is remembered, and the switch follows the memory.
func TestMemoryOutranksRuleCounts(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	if kept := h.call(h.w, guess(detect.NFT)); kept.Mode != detect.NFT {
		t.Fatalf("got %+v", kept)
	}
	if kept := h.call(h.w, conclusive(detect.Legacy)); kept.Mode != detect.NFT || h.all() != "wrapper" {
		t.Errorf("rule count against the memory: got %+v, the names point to %s", kept, h.all())
	}
	// A call that looked before the memory was made follows it, too.
	m := h.w.Memory(h.w.Container())
	m.mode = ""
	if kept := h.w.Keep(conclusive(detect.Legacy), h.w.Container(), m); kept.Mode != detect.NFT || !errors.Is(kept.Why, errRemembered) {
		t.Errorf("a late rule count: got %+v", kept)
	}
	if kept := h.w.Keep(guess(detect.Legacy), h.w.Container(), m); kept.Mode != detect.NFT {
		t.Errorf("a late guess: got %+v", kept)
	}
	// The rules that it counted may be those of the guess, so they prove nothing, even if they are of the same backend.
	late := conclusive(detect.NFT)
	late.Program = nftProgram
	if kept := h.w.Keep(late, h.w.Container(), m); kept.Mode != detect.NFT || !errors.Is(kept.Why, errRemembered) || h.all() != "wrapper" {
		t.Errorf("a late rule count of the same backend: got %+v, the names point to %s", kept, h.all())
	}
	if kept := h.call(h.w, kubelet(detect.Legacy)); kept.Mode != detect.Legacy || kept.Why != nil || h.all() != "legacy" || h.memory() != detect.Legacy {
		t.Errorf("kubelet: got %+v, the names point to %s, the memory says %q", kept, h.all(), h.memory())
	}
}

// Where no memory can be made, the switch alone says what the first call chose, and a slower one follows it.
func TestFollowTheSwitch(t *testing.T) {
	for _, slow := range []Answer{guess(detect.NFT), conclusive(detect.NFT)} {
		h := newHost(t)
		defer h.remove()
		installed(h)
		h.w.container.life = ""
		if kept := h.call(h.w, conclusive(detect.Legacy)); kept.Why != nil || h.all() != "legacy" {
			t.Fatalf("got %+v, the names point to %s", kept, h.all())
		}
		if kept := h.call(h.w, slow); kept.Mode != detect.Legacy || kept.Why == nil {
			t.Errorf("%s: got %+v", slow.Reason, kept)
		}
		if kept := h.call(h.w, kubelet(detect.NFT)); kept.Mode != detect.NFT {
			t.Errorf("kubelet: got %+v", kept)
		}
	}
}

// Whatever stands under the memory's name is passed over and left alone; then /run has the memory.
func TestForeignMemory(t *testing.T) {
	for _, test := range []struct {
		doc string
		put func(path string) error
	}{
		{"a file", func(path string) error { return os.WriteFile(path, []byte("nft"), 0o644) }},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o755) }},
		{"a FIFO", func(path string) error { return unix.Mkfifo(path, 0o644) }},
		{"another target", func(path string) error { return os.Symlink("nft ", path) }},
		{"4,095 characters", func(path string) error { return os.Symlink(strings.Repeat("n", 4095), path) }},
		{"no /dev/shm", func(path string) error { return os.Remove(path[:strings.LastIndex(path, "/")]) }},
	} {
		t.Run(test.doc, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			installed(h)
			path := h.real("/dev/shm/" + memoryName)
			h.check(test.put(path))
			before, _ := os.Lstat(path)
			if kept := h.call(h.w, guess(detect.Legacy)); kept.Mode != detect.Legacy {
				t.Errorf("got %+v", kept)
			}
			if target, err := os.Readlink(h.real("/run/" + memoryName)); target != "legacy" {
				t.Errorf("/run: %q, %v", target, err)
			}
			if h.memory() != detect.Legacy {
				t.Errorf("the memory says %q", h.memory())
			}
			if _, err := h.w.Reset("/usr/sbin"); err != nil || h.memory() != "" {
				t.Errorf("reset: %v, %q", err, h.memory())
			}
			if after, _ := os.Lstat(path); before != nil && (after == nil || !os.SameFile(before, after)) {
				t.Error("what was there is gone")
			}
		})
	}
}

// Another user's link is not believed.
func TestMemoryOfAnotherUser(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	h.w.uid++
	h.link("legacy", "/dev/shm/"+memoryName)
	if got := h.memory(); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestStartTime(t *testing.T) {
	stat := "1 (a) b (c)) S 0 1 1 0 -1 4194560 10 0 0 0 1 2 0 0 20 0 1 0 4711 9 9"
	if got, err := startTime([]byte(stat)); got != "4711" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for n := range len(stat) - len("4711 9 9") {
		if got, err := startTime([]byte(stat[:n])); err == nil {
			t.Fatalf("%q: got %q", stat[:n], got)
		}
	}
}
