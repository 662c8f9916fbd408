// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

// What stands in the way of a memory is left alone, and the next place has it.
func TestInTheWay(t *testing.T) {
	for doc, put := range map[string]func(path string) error{
		"a file":           func(path string) error { return os.WriteFile(path, []byte("nft"), 0o644) },
		"a directory":      func(path string) error { return os.Mkdir(path, 0o755) },
		"a FIFO":           func(path string) error { return unix.Mkfifo(path, 0o644) },
		"another target":   func(path string) error { return os.Symlink("NFT", path) },
		"4,095 characters": func(path string) error { return os.Symlink(strings.Repeat("n", 4095), path) },
	} {
		f := newFake(t)
		path := f.real(fmt.Sprintf("/dev/shm/%s.%d.%s", self.WrapperName, f.p.UID, life))
		f.check(put(path))
		before, err := os.Lstat(path)
		f.check(err)
		m := f.read()
		err = m.Make(detect.Memory{Mode: detect.Legacy}, Guess)
		if err != nil || !strings.HasPrefix(m.Path(), "/run/") {
			t.Errorf("%s: at %q, %v", doc, m.Path(), err)
		}
		if err := m.Forget(); err != nil || m.Mode() != "" {
			t.Errorf("%s: forget: %v, %q", doc, err, m.Mode())
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: what was there is gone: %v", doc, err)
		}
	}
}

// A guess by anybody in this network namespace is seen, in whatever life of a container and wherever it is, if it
// belongs to the user in its name; one in another namespace is none.
func TestGuessed(t *testing.T) {
	needRoot(t)
	const earlier = "7.99.0badcafe"
	names := map[string]struct {
		life string
		seen bool
	}{
		"shm/iptables-wrapper.1000." + life:         {life, true},
		"shm/iptables-wrapper.1000." + earlier:      {earlier, true},
		"iptables-wrapper.0." + life:                {life, true},
		"shm/iptables-wrapper.1000.8.4711.0badcafe": {"8.4711.0badcafe", false},
		"shm/iptables-wrapper.1000.7.4711.0ddba11":  {"7.4711.0ddba11", false},
		"shm/iptables-wrapper":                      {life, false},
		"shm/7." + life:                             {life, false},
	}
	targets := map[string]bool{
		"nft":                         true,
		"nft default blind LIFE":      true,
		"nft default unbound LIFE":    true,
		"legacy":                      false,
		"nft rule-count certain LIFE": false,
	}
	for name, in := range names {
		for target, guess := range targets {
			f := newFake(t)
			path := f.real("/dev/" + name)
			f.check(os.Symlink(strings.Replace(target, "LIFE", in.life, 1), path))
			if strings.Contains(name, ".1000.") {
				f.check(os.Lchown(path, 1000, 0))
			}
			m := f.read()
			got := m.Guessed(detect.NFT)
			if (got != "") != (in.seen && guess) {
				t.Errorf("%s -> %s: got %q", name, target, got)
			}
			f.check(os.Lchown(path, 1001, 0))
			got = m.Guessed("")
			if got != "" {
				t.Errorf("%s -> %s, another user's: got %q", name, target, got)
			}
		}
	}
}

// Where /dev is the container's own, root of another container of the pod decides nothing by what it puts in the
// shared /dev/shm.
func TestAnotherContainer(t *testing.T) {
	needRoot(t)
	for _, own := range []string{"", "legacy rule-count certain " + life} {
		f := newFake(t)
		f.ownDev()
		if own != "" {
			f.put("/dev", 0, own)
		}
		f.put("/dev/shm", 0, "nft kubelet-hint certain "+life)
		m := f.read()
		if want, _, _ := strings.Cut(own, " "); string(m.Mode()) != want {
			t.Errorf("%q: got %q at %q", own, m.Mode(), m.Path())
		}
		err := m.Set(detect.Memory{Mode: detect.Legacy, Reason: detect.Override})
		if err != nil || !strings.HasPrefix(m.Path(), "/dev/"+self.WrapperName) {
			t.Errorf("%q: made at %q, %v", own, m.Path(), err)
		}
	}
}

// A guess holds while its maker is at work, which may not have written yet, and not while another process has its ID.
// One's own mark gives way to a memory.
func TestMaker(t *testing.T) {
	f := newFake(t)
	cmd := exec.Command("sleep", "1h")
	f.check(cmd.Start())
	pid := strconv.Itoa(cmd.Process.Pid)
	_, start := stateAndStart(pid)
	path := fmt.Sprintf("/dev/shm/%s.%d.%s", self.WrapperName, f.p.UID, life)
	pending := func(maker string) bool {
		t.Helper()
		_ = os.Remove(f.real(path))
		f.check(os.Symlink(fmt.Sprintf("nft default guess:%s %s", maker, life), f.real(path)))
		m := f.read()
		if m.Mode() != detect.NFT {
			t.Errorf("%s: got %+v", maker, m.Remembered())
		}
		return m.pending()
	}
	if !pending(pid + "." + start) {
		t.Error("it is at work")
	}
	for _, maker := range []string{pid, pid + ".", pid + ".1", pid + "." + start + "0", thisProcess().String()} {
		if pending(maker) {
			t.Errorf("%s: that is not the maker", maker)
		}
	}
	f.check(cmd.Process.Kill())
	waitForZombie(t, pid)
	if pending(pid + "." + start) {
		t.Error("a zombie does nothing any more")
	}
	_ = cmd.Wait()
	if pending(pid + "." + start) {
		t.Error("it has ended")
	}
	f.check(os.Remove(f.real(path)))
	m := f.read()
	_ = m.Make(detect.Memory{Mode: detect.NFT, Reason: detect.Default}, Unbound)
	if m.Mode() != "" || m.Guessed(detect.NFT) == "" {
		t.Errorf("a mark: got %q, %q", m.Mode(), m.Guessed(detect.NFT))
	}
	err := m.Make(detect.Memory{Mode: detect.Legacy, Reason: detect.Default}, Guess)
	if err != nil || m.Mode() != detect.Legacy {
		t.Errorf("after a mark: got %q, %v", m.Mode(), err)
	}
	if err := m.Forget(); err != nil || m.Guessed("") != "" {
		t.Errorf("forgotten: %v, %q", err, m.Guessed(""))
	}
}

// waitForZombie waits until a process has ended, without waiting for it as wait(2) does.
func waitForZombie(t *testing.T, pid string) {
	t.Helper()
	for range 1000 {
		state, _ := stateAndStart(pid)
		if state == "Z" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("process %s has not ended", pid)
}

// A guess that does not hold is replaced; root's cannot be, so another user passes it over.
func TestDiscard(t *testing.T) {
	needRoot(t)
	f := newFake(t)
	f.p.UID = 1000
	f.check(os.Chmod(f.real("/dev/shm"), 0o777|os.ModeSticky))
	roots := f.put("/dev/shm", 0, "nft")
	m := f.read()
	m.Discard()
	if m.Mode() != "" {
		t.Fatalf("still %q", m.Mode())
	}
	if _, err := os.Lstat(f.real(roots)); err != nil {
		t.Errorf("root's: %v", err)
	}
	_ = m.Make(detect.Memory{Mode: detect.Legacy}, Guess) // the test is root, so the link is root's as well
	m.Refresh()
	if m.Mode() == detect.NFT {
		t.Error("root's guess is back")
	}
	f = newFake(t)
	path := f.put("/dev/shm", 0, "nft")
	m = f.read()
	m.Discard()
	if _, err := os.Lstat(f.real(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its own is still there: %v", err)
	}
}

// A memory that was made since the one that does not hold was read stays, and so does one that cannot be removed.
func TestDiscardNewer(t *testing.T) {
	f := newFake(t)
	path := f.put("/dev/shm", f.p.UID, "nft")
	m := f.read()
	newer := f.put("/run", f.p.UID, "legacy")
	f.check(os.Rename(f.real(newer), f.real(path)))
	m.Discard()
	if m.Mode() != detect.Legacy || m.Path() != path {
		t.Errorf("got %q at %q", m.Mode(), m.Path())
	}
	f.t.Step = func(op, _ string) error {
		if op == "unlink" {
			return unix.EROFS
		}
		return nil
	}
	m = f.read()
	err := m.Forget()
	if !errors.Is(err, unix.EROFS) || m.Mode() != detect.Legacy {
		t.Errorf("got %v, %q", err, m.Mode())
	}
	m.Discard()
	if m.Mode() != "" {
		t.Errorf("it is believed again: %q", m.Mode())
	}
}

// A memory that is gone, or that cannot be read, right after it was made is not replaced: it has no path any more.
func TestSetUnread(t *testing.T) {
	needRoot(t)
	f := newFake(t)
	f.p.UID = 4711 // whose memory the link is not: root makes it
	f.t.Step = func(op, path string) error {
		if !strings.HasPrefix(path, "/") && op != "read" {
			t.Errorf("%s %q", op, path)
		}
		return nil
	}
	m := f.read()
	err := m.Set(detect.Memory{Mode: detect.NFT, Reason: detect.KubeletHint, Conclusive: true})
	if err == nil || m.OwnPath() != "" {
		t.Errorf("got %v, %q", err, m.OwnPath())
	}
}
