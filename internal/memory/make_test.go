// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What was made stays until it is set or forgotten.
func TestMake(t *testing.T) {
	needsRoot(t)
	m, directory := inDirectory(t)
	if m.Exists() || m.Read().Mode != "" {
		t.Error("there is one in the beginning")
	}
	for _, d := range []evidence.Decision{guessed, hint} { // it does not matter that the second one is certain
		got, err := m.Make(d)
		if got != guessed || err != nil {
			t.Errorf("made: got %+v, %v", got, err)
		}
	}
	var namespace unix.Stat_t
	host.Check(t, unix.Stat("/proc/thread-self/ns/net", &namespace))
	content, err := os.Readlink(directory + "/iptables-memory")
	if want := fmt.Sprintf("legacy default guess %d nothing was found", namespace.Ino); content != want || err != nil {
		t.Errorf("got %q, %v, want %q", content, err, want)
	}
	if m.Path() != directory+"/iptables-memory" || !m.Exists() || m.Read() != guessed {
		t.Errorf("%s: got %+v", m.Path(), m.Read())
	}
	host.Check(t, m.Set(hint))
	if got := m.Read(); got != hint {
		t.Errorf("set: got %+v", got)
	}
	for range 2 {
		host.Check(t, m.Forget())
		if m.Exists() || m.Read().Mode != "" {
			t.Error("it is not forgotten")
		}
	}
}

// What says nothing is read as nothing, and is replaced by what is made.
func TestSaysNothing(t *testing.T) {
	needsRoot(t)
	type situation struct {
		doc  string
		make func(m Memory, path string) error
	}
	all := []situation{
		{"another user's", func(m Memory, path string) error {
			return errors.Join(os.Symlink(format(guessed, m.netns), path), os.Lchown(path, 1000, 0))
		}},
		{
			"a file",
			func(m Memory, path string) error { return os.WriteFile(path, []byte(format(guessed, m.netns)), 0o644) },
		},
		{"another network namespace's", func(m Memory, path string) error {
			return os.Symlink(format(guessed, m.netns+"0"), path)
		}},
	}
	for _, test := range nothing {
		all = append(all, situation{test.doc, func(m Memory, path string) error {
			return os.Symlink(strings.ReplaceAll(test.content, "4026531840", m.netns), path)
		}})
	}
	for _, test := range all {
		if strings.Contains(test.doc, "longer number") {
			continue // it is one digit more than this namespace's
		}
		m, directory := inDirectory(t)
		host.Check(t, test.make(m, directory+"/"+Name))
		if got := m.Read(); got != (evidence.Decision{}) || !m.Exists() {
			t.Errorf("%s: got %+v, %t", test.doc, got, m.Exists())
		}
		got, err := m.Make(hint)
		if got != hint || err != nil || m.Read() != hint {
			t.Errorf("%s: made %+v, %v; got %+v", test.doc, got, err, m.Read())
		}
	}
}

// A directory in its place is nobody's, and stays.
func TestDirectoryInItsPlace(t *testing.T) {
	m, directory := inDirectory(t)
	host.Check(t, os.Mkdir(directory+"/"+Name, 0o755))
	made, err := m.Make(hint)
	if made.Mode != "" || !errors.Is(err, unix.EISDIR) || !errors.Is(m.Set(hint), unix.EISDIR) || m.Forget() == nil {
		t.Errorf("got %+v, %v", made, err)
	}
	if m.Read().Mode != "" {
		t.Errorf("got %+v", m.Read())
	}
}

// Between two steps of a call that makes a memory, another one makes its own, or removes it. What the call returns is
// what is remembered.
func TestMakeRaces(t *testing.T) {
	needsRoot(t)
	for _, test := range []struct {
		doc     string
		at      string // before which step
		happens func(m Memory) error
		want    evidence.Decision
	}{
		{"made before", "symlink", func(m Memory) error { return m.Set(guessed) }, guessed},
		{"replaced after it was found", "lstat", func(m Memory) error { return m.Set(hint) }, hint},
		{"removed after it was found", "lstat", Memory.Forget, hint},
		{"removed before it is read", "readlink", Memory.Forget, hint},
	} {
		m, directory := inDirectory(t)
		d, err := dir.Open(directory)
		host.Check(t, err)
		other := In(d)
		if test.at != "symlink" {
			host.Check(t, other.Set(guessed))
		}
		happened := false
		m.Dir.Step = func(operation, _ string) {
			if operation != test.at || happened {
				return
			}
			happened = true
			host.Check(t, test.happens(other))
		}
		got, err := m.Make(hint)
		m.Dir.Step = nil
		if got != test.want || m.Read() != test.want || err != nil || !happened {
			t.Errorf("%s: got %+v, %v; it is %+v", test.doc, got, err, m.Read())
		}
		d.Close()
	}
}

// A link that is gone when it is read is made again: what another call has made since stays.
func TestGoneMeanwhile(t *testing.T) {
	needsRoot(t)
	m, directory := inDirectory(t)
	d, err := dir.Open(directory)
	host.Check(t, err)
	defer d.Close()
	other := In(d)
	host.Check(t, other.Set(hint))
	m.Dir.Step = func(operation, _ string) {
		if operation != "lstat" {
			return
		}
		m.Dir.Step = func(string, string) { // before the next one
			m.Dir.Step = nil
			host.Check(t, other.Set(hint))
		}
		host.Check(t, other.Forget())
	}
	got, err := m.Make(guessed)
	if got != hint || m.Read() != hint || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Whoever makes links that are not root's, as some file systems do, comes to an end, and has no memory.
func TestNeverRoots(t *testing.T) {
	m, directory := inDirectory(t)
	host.Check(t, os.Symlink("of nobody", directory+"/"+Name))
	host.Check(t, os.Lchown(directory+"/"+Name, max(os.Geteuid(), 1000), -1))
	m.Dir.Step = func(operation, name string) {
		if operation == "lstat" && os.Geteuid() == 0 {
			host.Check(t, os.Lchown(directory+"/"+name, 1000, -1))
		}
	}
	got, err := m.Make(hint)
	if !errors.Is(err, errLost) || got.Mode != "" || m.Read().Mode != "" {
		t.Errorf("got %+v, %v; it is %+v", got, err, m.Read())
	}
}

// A read-only directory, or one without the right to write.
func TestCannotBeMade(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	m, directory := inDirectory(t)
	host.Check(t, unix.Mount(directory, directory, "", unix.MS_BIND, ""))
	host.Check(t, unix.Mount("", directory, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	defer unix.Unmount(directory, 0)
	d, err := dir.Open(directory) // the other one was opened before the mount
	host.Check(t, err)
	defer d.Close()
	host.Check(t, m.Set(guessed))
	readOnly := In(d)
	made, err := In(d).Make(hint)
	if made != guessed || err != nil {
		t.Errorf("there is one: got %+v, %v", made, err)
	}
	if !errors.Is(readOnly.Set(hint), unix.EROFS) || !errors.Is(readOnly.Forget(), unix.EROFS) {
		t.Errorf("got %v, %v", readOnly.Set(hint), readOnly.Forget())
	}
	host.Check(t, m.Forget())
	made, err = readOnly.Make(hint)
	if made.Mode != "" || !errors.Is(err, unix.EROFS) {
		t.Errorf("got %+v, %v", made, err)
	}
	host.Check(t, readOnly.Forget()) // nothing
}
