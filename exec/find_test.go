// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestFindRefuses(t *testing.T) {
	for _, test := range []struct {
		mode detect.Mode
		name string
	}{
		{"", "iptables"}, {"auto", "iptables"}, {"NFT", "iptables"}, {"nft/../legacy", "iptables"},
		{"nft", ""}, {"nft", "arptables"}, {"nft", "iptables-wrapper"}, {"nft", "iptables-nft"},
		{"nft", "/usr/sbin/iptables"},
	} {
		path, err := Find(test.mode, test.name)
		if path != "" || err == nil || !strings.Contains(err.Error(), "is not one of") {
			t.Errorf("%q: got %q, %v", test, path, err)
		}
	}
}

// The programs of this machine, whatever PATH says.
func TestFind(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	for _, mode := range programs.Modes() {
		for _, name := range programs.Names() {
			path, err := Find(mode, name)
			if errors.Is(err, ErrMissing) {
				host.Cannot(t, "find %s for %s: %v; make test installs it", name, mode, err)
			}
			if want := "/usr/sbin/" + programs.Single(mode, name); err != nil || path != want {
				t.Errorf("%s for %s: got %q, %v, want %q", name, mode, path, err, want)
			}
		}
	}
}

// What may be where a program should be.
func TestFindIn(t *testing.T) {
	const program = "#!/bin/sh\n"
	wrapper := "\x7fELF " + programs.Marker()
	for _, test := range []struct {
		doc   string
		files map[string]string
		want  string
		err   error
	}{
		{"nothing", nil, "", ErrMissing},
		{
			doc:   "only the other mode",
			files: map[string]string{"1/xtables-legacy-multi": program, "1/iptables-legacy-restore": program},
			err:   ErrMissing,
		},
		{
			doc:   "a file that can be started as it is",
			files: map[string]string{"1/xtables-nft-multi": program, "1/iptables-nft-restore": program},
			want:  "1/iptables-nft-restore",
		},
		{"a multi-call program", map[string]string{"1/xtables-nft-multi": program}, "1/xtables-nft-multi", nil},
		{"another command's", map[string]string{"1/iptables-nft": program}, "", ErrMissing},
		{"the next directory", map[string]string{"2/iptables-nft-restore": program}, "2/iptables-nft-restore", nil},
		{
			doc:   "the first directory first",
			files: map[string]string{"1/xtables-nft-multi": program, "2/iptables-nft-restore": program},
			want:  "1/xtables-nft-multi",
		},
		{
			doc:   "a wrapper",
			files: map[string]string{"1/iptables-nft-restore": wrapper, "2/iptables-nft-restore": program},
			err:   ErrRecursion,
		},
		{
			doc:   "a wrapper, the marker across two blocks",
			files: map[string]string{"1/xtables-nft-multi": "\x7fELF" + strings.Repeat("x", 64<<10-24) + wrapper},
			err:   ErrRecursion,
		},
		{"not executable", map[string]string{"1/-xtables-nft-multi": program}, "", unix.EACCES},
		{
			doc:   "not executable, but the next is",
			files: map[string]string{"1/-xtables-nft-multi": program, "2/xtables-nft-multi": program},
			want:  "2/xtables-nft-multi",
		},
		{"a directory", map[string]string{"1/xtables-nft-multi/file": program}, "", unix.EACCES},
	} {
		root := t.TempDir()
		for path, content := range test.files {
			perm := os.FileMode(0o755)
			if dir, file := filepath.Split(path); strings.HasPrefix(file, "-") {
				path, perm = dir+file[1:], 0o644
			}
			path = filepath.Join(root, path)
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), perm))
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := FindIn([]string{root + "/1", root + "/2"}, detect.NFT, "iptables-restore")
		if !errors.Is(err, test.err) || got != "" && got != filepath.Join(root, test.want) ||
			(got == "") != (test.want == "") {
			t.Errorf("%s: got %q, %v, want %q, %v", test.doc, got, err, test.want, test.err)
		}
	}
}

// Directories that are not absolute are refused, and without any nothing is found.
func TestFindInRefuses(t *testing.T) {
	for _, dirs := range [][]string{{"sbin"}, {"/usr/sbin", "."}, {""}} {
		path, err := FindIn(dirs, detect.NFT, "iptables")
		if path != "" || err == nil || !strings.Contains(err.Error(), "is not absolute") {
			t.Errorf("%q: got %q, %v", dirs, path, err)
		}
	}
	path, err := FindIn(nil, detect.NFT, "iptables")
	if path != "" || !errors.Is(err, ErrMissing) || !strings.HasSuffix(err.Error(), " in no directory") {
		t.Errorf("no directories: got %q, %v", path, err)
	}
}

// The directories of Find are the caller's to change.
func TestDirs(t *testing.T) {
	dirs := Dirs()
	dirs[0] = "/changed"
	if Dirs()[0] != "/usr/sbin" {
		t.Errorf("got %q", Dirs())
	}
}

// A FIFO that has taken a program's place is refused, and not waited for.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "xtables-nft-multi")
	if err := unix.Mkfifo(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := isWrapper(path, unix.Stat_t{}); got || !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v, %v", got, err)
	}
}
