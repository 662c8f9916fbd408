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

// Before each step of one process, another one does the whole, or comes as far as its temporary link and is killed. One
// of the two contents is there in the end, and no temporary link but that of the killed one.
func TestTwoReplace(t *testing.T) {
	for _, leftOver := range []bool{false, true} {
		for _, killed := range []bool{false, true} {
			for step := 0; ; step++ {
				top := t.TempDir()
				if leftOver {
					host.Check(t, os.Symlink("of a third one", top+"/name.new"))
				}
				one, other := open(t, top), open(t, top)
				var steps []string
				one.Step = func(operation, name string) {
					steps = append(steps, operation+" "+name)
					if len(steps) != step+1 {
						return
					}
					if killed {
						_ = other.remove("name.new")
						host.Check(t, other.symlink("other", "name.new"))
						return
					}
					host.Check(t, other.Replace("other", "name"))
				}
				err := one.Replace("one", "name")
				got := list(t, top)
				inTheWay := errors.Is(err, unix.EEXIST) && killed && got == "name.new -> other"
				if errors.Is(err, unix.ENOENT) && got == "name -> other" {
					err = nil // the other one won, and this one knows
				}
				if !inTheWay && (err != nil || got != "name -> one" && got != "name -> other") {
					t.Errorf("left over: %t; killed: %t; steps %q: got %q, %v", leftOver, killed, steps, got, err)
				}
				if len(steps) <= step {
					break
				}
			}
		}
	}
}
