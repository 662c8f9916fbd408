// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Inodes are unique in one file system only. A process that waits for a lock does not hold it.
func TestLockedBy(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 1 00:19:5678 0 EOF
2: FLOCK  ADVISORY  WRITE 2 00:1a:5678 0 EOF
3: FLOCK  ADVISORY  WRITE 3 00:19:5678 0 EOF
3: -> FLOCK  ADVISORY  WRITE 4 00:19:5678 0 EOF
4: FLOCK  ADVISORY  WRITE 5 00:1b:5678 0 EOF
`
	for _, test := range []struct {
		minor uint32
		ino   uint64
		want  string
	}{
		{0x19, 5678, "3"},
		{0x1a, 5678, "2"},
		{0x1b, 5678, "5"},
		{0x1c, 5678, ""},
		{0x19, 678, ""},
	} {
		st := unix.Stat_t{Dev: unix.Mkdev(0, test.minor), Ino: test.ino}
		if got := lockedBy(locks, st); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

// A lock that several processes take in turn, each for a moment, is not held.
func TestHeldByOne(t *testing.T) {
	for _, test := range []struct {
		doc  string
		free int      // the try at which it is free, 0 if never
		by   []string // who has it at the beginning of each round, the last one to the end
		held bool
		pid  string
	}{
		{"one process", 0, []string{"7"}, true, "7"},
		{"a process that cannot be seen", 0, []string{""}, true, ""},
		{"one that cannot be seen at first", 0, []string{"", "7"}, true, "7"},
		{"two processes", 0, []string{"7", "8"}, false, ""},
		{"two, and one that cannot be seen", 0, []string{"7", "", "8"}, false, ""},
		{"free at once", 1, []string{"7"}, false, ""},
		{"free at the end", rounds * tries, []string{"7"}, false, ""},
	} {
		try, round := 0, 0
		locked := func() bool {
			try++
			return try != test.free
		}
		by := func() string {
			round++
			return slices.Concat(test.by, slices.Repeat(test.by[len(test.by)-1:], rounds))[round-1]
		}
		held, pid := heldByOne(locked, by)
		if held != test.held || pid != test.pid {
			t.Errorf("%s: got %v, %q", test.doc, held, pid)
		}
	}
}

// A process can give itself any name, also one that looks like a line of doctor's.
func TestNameOfHolder(t *testing.T) {
	const file = "/proc/self/comm"
	before := host.Read(t, file)
	host.Check(t, os.WriteFile(file, []byte("x) PROBLEM \x1b[1m"), 0o644))
	got := process("self")
	host.Check(t, os.WriteFile(file, before, 0o644))
	const want = `process self ("x) PROBLEM \x1b[1m")`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A lock that is shared keeps iptables-legacy out as well. Nobody holds one that is free.
func TestHolderOfSharedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	host.Check(t, err)
	defer f.Close()
	got := holder(path)
	if got != "" {
		t.Errorf("free: %s", got)
	}
	host.Check(t, unix.Flock(int(f.Fd()), unix.LOCK_SH))
	got = holder(path)
	if !strings.HasSuffix(got, fmt.Sprintf(" holds %q", path)) {
		t.Errorf("shared: got %q", got)
	}
}
