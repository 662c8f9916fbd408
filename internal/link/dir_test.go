// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A directory may be opened through a link. What the process becomes does not have it.
func TestOpen(t *testing.T) {
	top := t.TempDir()
	host.Check(t, os.Symlink(".", top+"/link"))
	d := open(t, top+"/link")
	if d.Join("name") != top+"/link/name" || !d.IsAt(top) || d.IsAt("/") {
		t.Errorf("got %q", d.Path)
	}
	flags, err := unix.FcntlInt(uintptr(d.fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("execve(2) does not close it: %v", err)
	}
}

// The directory stays the one that was opened, whatever happens to its path.
func TestMoved(t *testing.T) {
	top := t.TempDir()
	host.Check(t, os.Mkdir(top+"/was", 0o755))
	d := open(t, top+"/was")
	host.Check(t, os.Rename(top+"/was", top+"/is"))
	host.Check(t, os.Mkdir(top+"/was", 0o755))
	host.Check(t, d.Replace("content", "link"))
	got, err := d.Readlink("link")
	if got != "content" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if is, was := list(t, top+"/is"), list(t, top+"/was"); is != "link -> content" || was != "" {
		t.Errorf("got %q, and at the old path %q", is, was)
	}
}

// The longest content that a link can have is not cut off.
func TestLongContent(t *testing.T) {
	d := open(t, t.TempDir())
	long := strings.Repeat("x", unix.PathMax-1)
	host.Check(t, d.Replace(long, "link"))
	got, err := d.Readlink("link")
	if got != long || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// A program replaces the file of its name, and does not write into it: others may run it.
func TestWriteProgram(t *testing.T) {
	top := t.TempDir()
	host.Check(t, os.WriteFile(top+"/old", []byte("old"), 0o644))
	for _, name := range []string{"/name", "/name.new"} { // the second one is left of a killed process
		host.Check(t, os.Link(top+"/old", top+name))
	}
	host.Check(t, open(t, top).WriteProgram("name", []byte("program")))
	old, program := string(host.Read(t, top+"/old")), string(host.Read(t, top+"/name"))
	if old != "old" || program != "program" {
		t.Errorf("got %q, and the file of before has %q", program, old)
	}
	if got := list(t, top); got != "name, old" {
		t.Errorf("got %s", got)
	}
}

// One process has the lock. Another one tries every millisecond, for as long as its patience.
func TestLock(t *testing.T) {
	for _, test := range []struct {
		patience   time.Duration
		releasedAt int // the try before which the lock is released
		tries      int
	}{
		{patience: 0, tries: 1},
		{patience: 3 * time.Millisecond, tries: 4},
		{patience: 3 * time.Millisecond, tries: 4, releasedAt: 4},
	} {
		top := t.TempDir()
		one, err := Open(top)
		host.Check(t, err)
		host.Check(t, one.Lock(0))
		tries := 0
		other := open(t, top)
		other.Step = func(string, string) {
			tries++
			if tries == test.releasedAt {
				one.Close()
			}
		}
		err = other.Lock(test.patience)
		if errors.Is(err, unix.EWOULDBLOCK) != (test.releasedAt == 0) || tries != test.tries {
			t.Errorf("%+v: got %v after %d tries", test, err, tries)
		}
	}
}
