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
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Iptables-legacy locks a regular file, and creates one. What else stands there is said by its kind, and never opened:
// on a FIFO, that would block.
func TestLockable(t *testing.T) {
	const path = "lock"
	for _, test := range []struct {
		doc  string
		make func() error
		want string // "" if it can be locked
	}{
		{
			doc:  "a file",
			make: func() error { return os.WriteFile(path, nil, 0o600) },
		},
		{
			doc:  "nothing, where a file can be created",
			make: func() error { return nil },
		},
		{
			doc:  "a link to where a file can be created",
			make: func() error { return os.Symlink("other", path) },
		},
		{
			doc:  "a link to where none can",
			make: func() error { return os.Symlink("gone/lock", path) },
			want: "no such file or directory",
		},
		{
			doc:  "a directory",
			make: func() error { return os.Mkdir(path, 0o700) },
			want: `"lock" is a directory, not a regular file`,
		},
		{
			doc:  "a FIFO",
			make: func() error { return unix.Mkfifo(path, 0o600) },
			want: `"lock" is a FIFO, not a regular file`,
		},
		{
			doc:  "a link to a device",
			make: func() error { return os.Symlink("/dev/null", path) },
			want: `"lock" is a device, not a regular file`,
		},
		{
			doc:  "a socket",
			make: func() error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) },
			want: `"lock" is a socket, not a regular file`,
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			t.Chdir(t.TempDir())
			host.Check(t, test.make())
			err := lockable(path)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (got == "") != (test.want == "") || !strings.HasSuffix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

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
		{"free after nine tenths of a second", int(900 * time.Millisecond / retry), []string{"7"}, false, ""},
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
