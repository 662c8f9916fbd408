// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The file is complete and executable by all, whatever there was and whatever the umask.
func TestWriteProgram(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	for _, test := range []struct {
		doc  string
		make func(top string) error
		want string
	}{
		{doc: "nothing", make: func(string) error { return nil }, want: "name"},
		{
			doc: "a file that runs", want: "name, old",
			make: func(top string) error {
				return errors.Join(os.WriteFile(top+"/old", []byte("old"), 0o644), os.Link(top+"/old", top+"/name"))
			},
		},
		{
			doc: "a link to a file", want: "name, old",
			make: func(top string) error {
				return errors.Join(os.WriteFile(top+"/old", []byte("old"), 0o644), os.Symlink("old", top+"/name"))
			},
		},
		{
			doc: "an unfinished file that was left over", want: "name",
			make: func(top string) error {
				return os.WriteFile(top+"/name.new", []byte("unfinished, and longer"), 0o600)
			},
		},
		{
			doc: "a link in the place of the unfinished file", want: "name, old",
			make: func(top string) error {
				return errors.Join(os.WriteFile(top+"/old", []byte("old"), 0o644), os.Symlink("old", top+"/name.new"))
			},
		},
	} {
		top := t.TempDir()
		host.Check(t, test.make(top))
		err := open(t, top).WriteProgram("name", []byte("program"))
		if got := list(t, top); got != test.want || err != nil {
			t.Errorf("%s: got %q, %v", test.doc, got, err)
			continue
		}
		info, err := os.Lstat(top + "/name")
		host.Check(t, err)
		if got := string(host.Read(t, top+"/name")); got != "program" || info.Mode() != 0o755 {
			t.Errorf("%s: got %q, %s", test.doc, got, info.Mode())
		}
		old, err := os.ReadFile(top + "/old")
		if err == nil && string(old) != "old" {
			t.Errorf("%s: another file has %q", test.doc, old)
		}
	}
}

// Nothing changes, and nothing is left.
func TestWriteProgramFails(t *testing.T) {
	for _, test := range []struct {
		doc, directory string
		want           error
	}{
		{doc: "a directory of that name", directory: "name", want: unix.EISDIR},
		{doc: "a directory where the unfinished file would be", directory: "name.new", want: unix.EISDIR},
	} {
		top := t.TempDir()
		host.Check(t, os.Mkdir(top+"/"+test.directory, 0o755))
		err := open(t, top).WriteProgram("name", []byte("program"))
		if got := list(t, top); got != test.directory || !errors.Is(err, test.want) {
			t.Errorf("%s: got %q, %v", test.doc, got, err)
		}
	}
}

// It cannot be written to the end: the old file stays.
func TestWriteProgramTooLong(t *testing.T) {
	var limit unix.Rlimit
	host.Check(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	top := t.TempDir()
	host.Check(t, os.WriteFile(top+"/name", []byte("old"), 0o755))
	// Go ignores the signal SIGXFSZ, so that write(2) fails with EFBIG.
	host.Check(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4, Max: limit.Max}))
	err := open(t, top).WriteProgram("name", []byte("program"))
	host.Check(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	if got := list(t, top); got != "name" || !errors.Is(err, unix.EFBIG) {
		t.Errorf("got %q, %v", got, err)
	}
	if got := string(host.Read(t, top+"/name")); got != "old" {
		t.Errorf("got %q", got)
	}
}
