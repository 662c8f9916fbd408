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

func TestReplace(t *testing.T) {
	for _, test := range []struct {
		doc  string
		make func(top string) error
		want string
	}{
		{doc: "nothing", make: func(string) error { return nil }, want: "name -> content"},
		{
			doc: "a link", make: func(top string) error { return os.Symlink("old", top+"/name") },
			want: "name -> content",
		},
		{
			doc: "a file", make: func(top string) error { return os.WriteFile(top+"/name", nil, 0o644) },
			want: "name -> content",
		},
		{
			doc: "a temporary link that was left over", want: "name -> content",
			make: func(top string) error { return os.Symlink("old", top+"/name.new") },
		},
		{
			doc:  "another name's temporary link",
			make: func(top string) error { return os.Symlink("old", top+"/other.new") },
			want: "name -> content, other.new -> old",
		},
	} {
		top := t.TempDir()
		host.Check(t, test.make(top))
		err := open(t, top).Replace("content", "name")
		if got := list(t, top); got != test.want || err != nil {
			t.Errorf("%s: got %q, %v", test.doc, got, err)
		}
	}
}

// A directory is not replaced, and no temporary link stays.
func TestReplaceFails(t *testing.T) {
	for _, test := range []struct {
		doc, directory string
		want           error
		left           string
	}{
		{doc: "of that name", directory: "name", want: unix.EISDIR, left: "name"},
		{doc: "where the temporary link would be", directory: "name.new", want: unix.EISDIR, left: "name.new"},
	} {
		top := t.TempDir()
		host.Check(t, os.Mkdir(top+"/"+test.directory, 0o755))
		err := open(t, top).Replace("content", "name")
		if got := list(t, top); got != test.left || !errors.Is(err, test.want) {
			t.Errorf("%s: got %q, %v", test.doc, got, err)
		}
	}
	top := t.TempDir()
	d := open(t, top)
	host.Check(t, os.Remove(top))
	err := d.Replace("content", "name")
	if !errors.Is(err, unix.ENOENT) {
		t.Errorf("in a directory that was removed: got %v", err)
	}
}
