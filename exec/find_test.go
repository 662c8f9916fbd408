// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestCommands(t *testing.T) {
	want := strings.Fields("iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore")
	got := exec.Commands()
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	got[0] = "changed"
	if !slices.Equal(exec.Commands(), want) {
		t.Error("a caller changed what the next one gets")
	}
}

// put makes files, named by their paths below a directory, that can be executed.
func put(t *testing.T, top string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		path = filepath.Join(top, path)
		host.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		host.Check(t, os.WriteFile(path, nil, 0o755))
	}
}

// In each directory the command's own file comes first, then the multi-call program. The next directory comes after.
func TestFind(t *testing.T) {
	for _, test := range []struct {
		doc     string
		backend detect.Backend
		command string
		files   []string
		want    string
	}{
		{
			doc: "a single file", backend: detect.NFT, command: "iptables",
			files: []string{"a/iptables-nft"}, want: "a/iptables-nft",
		},
		{
			doc: "a multi-call program", backend: detect.NFT, command: "iptables",
			files: []string{"a/xtables-nft-multi"}, want: "a/xtables-nft-multi",
		},
		{
			doc: "a single file before a multi-call program", backend: detect.Legacy, command: "iptables",
			files: []string{"a/xtables-legacy-multi", "a/iptables-legacy"}, want: "a/iptables-legacy",
		},
		{
			doc: "the first directory before a single file in the next", backend: detect.NFT, command: "iptables",
			files: []string{"a/xtables-nft-multi", "b/iptables-nft"}, want: "a/xtables-nft-multi",
		},
		{
			doc: "the next directory", backend: detect.NFT, command: "iptables",
			files: []string{"a/iptables-legacy", "a/iptables", "b/iptables-nft"}, want: "b/iptables-nft",
		},
		{
			doc: "no directory of that name", backend: detect.NFT, command: "iptables",
			files: []string{"b/iptables-nft"}, want: "b/iptables-nft",
		},
		{
			doc: "another command's file", backend: detect.NFT, command: "iptables-save",
			files: []string{"a/iptables-nft", "a/iptables-nft-restore", "b/iptables-nft-save"},
			want:  "b/iptables-nft-save",
		},
		{
			doc: "IPv6", backend: detect.Legacy, command: "ip6tables-restore",
			files: []string{"a/iptables-legacy-restore", "a/ip6tables-legacy-restore"},
			want:  "a/ip6tables-legacy-restore",
		},
	} {
		top := t.TempDir()
		put(t, top, test.files...)
		got, err := exec.Find(test.backend, test.command, top+"/a", top+"/b")
		want := exec.Program{Path: top + "/" + test.want, MultiCall: strings.HasSuffix(test.want, "-multi")}
		if got != want || err != nil {
			t.Errorf("%s: got %+v, %v", test.doc, got, err)
		}
	}
}

// What cannot be executed is passed over, and is the error only if nothing else is found. None of these files is in a
// standard directory, so the error is about them where the machine has no iptables.
func TestFindPassesOver(t *testing.T) {
	for _, test := range []struct {
		doc  string
		make func(path string) error
	}{
		{"not executable", func(path string) error { return os.WriteFile(path, nil, 0o644) }},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o755) }},
		{"a FIFO", func(path string) error { return unix.Mkfifo(path, 0o755) }},
		{"a broken link", func(path string) error { return os.Symlink("gone", path) }},
		{"a link in a circle", func(path string) error { return os.Symlink("iptables-nft", path) }},
	} {
		top := t.TempDir()
		put(t, top, "b/xtables-nft-multi")
		host.Check(t, os.Mkdir(top+"/a", 0o755))
		host.Check(t, test.make(top+"/a/iptables-nft"))
		got, err := exec.Find(detect.NFT, "iptables", top+"/a", top+"/b")
		if got != (exec.Program{Path: top + "/b/xtables-nft-multi", MultiCall: true}) || err != nil {
			t.Errorf("%s: got %+v, %v", test.doc, got, err)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", "iptables-nft", "iptables-nft-translate")
	for _, test := range []struct {
		doc     string
		backend detect.Backend
		command string
		dirs    []string
		want    string
	}{
		{
			doc: "another command", backend: detect.NFT, command: "iptables-translate",
			want: `command "iptables-translate" is not one of iptables, iptables-save, iptables-restore, ip6tables, ` +
				`ip6tables-save, ip6tables-restore`,
		},
		{
			doc: "a path", backend: detect.NFT, command: "/usr/sbin/iptables",
			want: `command "/usr/sbin/iptables" is not one of iptables, iptables-save, iptables-restore, ip6tables, ` +
				`ip6tables-save, ip6tables-restore`,
		},
		{
			doc: "another backend", backend: "auto", command: "iptables",
			want: `backend "auto" is not one of nft, legacy`,
		},
		{doc: "no backend", backend: "", command: "iptables", want: `backend "" is not one of nft, legacy`},
		{
			doc: "a relative directory", backend: detect.NFT, command: "iptables", dirs: []string{"."},
			want: `directory "." is not absolute`,
		},
		{
			doc: "no directory", backend: detect.NFT, command: "iptables", dirs: []string{""},
			want: `directory "" is not absolute`,
		},
	} {
		got, err := exec.Find(test.backend, test.command, test.dirs...)
		if got != (exec.Program{}) || err == nil || err.Error() != test.want || errors.Is(err, exec.ErrMissing) {
			t.Errorf("%s: got %+v, %v", test.doc, got, err)
		}
	}
}

// The standard directories, in their order, without what the machine has in them. PATH does not matter.
func TestFindInStandardDirs(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	t.Setenv("PATH", t.TempDir())
	put(t, os.Getenv("PATH"), "iptables-nft")
	_, err := exec.Find(detect.NFT, "iptables")
	host.Check(t, err)
	real := map[string]bool{}
	var standard []string
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"} {
		target, err := filepath.EvalSymlinks(dir)
		host.Check(t, err)
		if real[target] {
			continue // /sbin is /usr/sbin, as on all that this machine's system is
		}
		real[target] = true
		standard = append(standard, dir)
		host.Check(t, unix.Mount("none", dir, "tmpfs", 0, "mode=755"))
	}
	_, err = exec.Find(detect.NFT, "iptables", "/run/gone", "/etc/passwd") // neither is a directory
	want := "no such program: iptables-nft or xtables-nft-multi"
	if !errors.Is(err, exec.ErrMissing) || err.Error() != want {
		t.Errorf("nowhere: got %v", err)
	}
	for _, dir := range slices.Backward(standard) { // each is before those in which there is one already
		put(t, dir, "iptables-nft")
		got, err := exec.Find(detect.NFT, "iptables")
		if got != (exec.Program{Path: dir + "/iptables-nft"}) || err != nil {
			t.Errorf("%s: got %+v, %v", dir, got, err)
		}
	}
	beside := t.TempDir() + "/beside"
	put(t, beside, "xtables-nft-multi")
	got, err := exec.Find(detect.NFT, "iptables", beside)
	if got.Path != beside+"/xtables-nft-multi" || err != nil {
		t.Errorf("a directory that is given: got %+v, %v", got, err)
	}

	// What exists and cannot be executed is not missing, and the first such file is the one that is named.
	for _, dir := range standard {
		host.Check(t, os.Remove(dir+"/iptables-nft"))
	}
	host.Check(t, os.Chmod(beside+"/xtables-nft-multi", 0o644))
	host.Check(t, os.Mkdir("/usr/bin/iptables-nft", 0o755))
	for _, dirs := range [][]string{{beside}, nil} {
		file := "/usr/bin/iptables-nft"
		if dirs != nil {
			file = beside + "/xtables-nft-multi"
		}
		_, err = exec.Find(detect.NFT, "iptables", dirs...)
		if want := "execute " + file + ": permission denied"; !errors.Is(err, unix.EACCES) || err.Error() != want {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
