// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestFindRefuses(t *testing.T) {
	for _, test := range [][2]string{
		{"", "iptables"}, {"auto", "iptables"}, {"NFT", "iptables"}, {"nft/../legacy", "iptables"},
		{"nft", ""}, {"nft", "arptables"}, {"nft", "iptables-wrapper"}, {"nft", "iptables-nft"}, {"nft", "/usr/sbin/iptables"},
	} {
		if path, err := Find(test[0], test[1]); path != "" || err == nil || !strings.Contains(err.Error(), "is none of") {
			t.Errorf("%q: got %q, %v", test, path, err)
		}
	}
}

// The programs of this machine, whatever PATH says.
func TestFind(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	for _, mode := range modes {
		for _, name := range names {
			path, err := Find(mode, name)
			if errors.Is(err, ErrMissing) {
				host.Cannot(t, "find %s for %s: %v; make test installs it", name, mode, err)
			}
			if want := "/usr/sbin/xtables-" + mode + "-multi"; err != nil || path != want {
				t.Errorf("%s for %s: got %q, %v, want %q", name, mode, path, err, want)
			}
		}
	}
}

// What may be where a program should be.
func TestFindAmong(t *testing.T) {
	const program, wrapper = "#!/bin/sh\n", "\x7fELF " + marker
	for _, test := range []struct {
		doc   string
		files map[string]string
		want  string
		err   error
	}{
		{"nothing", nil, "", ErrMissing},
		{"only the other mode", map[string]string{"1/xtables-legacy-multi": program, "1/iptables-legacy-restore": program}, "", ErrMissing},
		{"a multi-call program", map[string]string{"1/xtables-nft-multi": program, "1/iptables-nft-restore": program}, "1/xtables-nft-multi", nil},
		{"single programs", map[string]string{"1/iptables-nft": program, "1/iptables-nft-restore": program}, "1/iptables-nft-restore", nil},
		{"the next directory", map[string]string{"2/iptables-nft-restore": program}, "2/iptables-nft-restore", nil},
		{"a wrapper", map[string]string{"1/xtables-nft-multi": wrapper, "2/xtables-nft-multi": program}, "", ErrRecursion},
		{"a link to a wrapper", map[string]string{"1/iptables-wrapper": wrapper, "1/iptables-nft-restore": "-> iptables-wrapper"}, "", ErrRecursion},
		{"a link to nothing", map[string]string{"1/xtables-nft-multi": "-> gone", "2/xtables-nft-multi": program}, "2/xtables-nft-multi", nil},
		{"not executable", map[string]string{"1/xtables-nft-multi": ""}, "", unix.EACCES},
		{"not executable, and one that is", map[string]string{"1/xtables-nft-multi": "", "2/xtables-nft-multi": program}, "2/xtables-nft-multi", nil},
		{"a loop", map[string]string{"1/xtables-nft-multi": "-> xtables-nft-multi"}, "", unix.ELOOP},
	} {
		root := t.TempDir()
		dirs := []string{filepath.Join(root, "1"), filepath.Join(root, "2")}
		for _, d := range dirs {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, content := range test.files {
			path := filepath.Join(root, name)
			var err error
			if target, ok := strings.CutPrefix(content, "-> "); ok {
				err = os.Symlink(target, path)
			} else {
				mode := os.FileMode(0o755)
				if content == "" {
					mode = 0o644
				}
				err = os.WriteFile(path, []byte(content), mode)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		want := test.want
		if want != "" {
			want = filepath.Join(root, want)
		}
		got, err := find(slices.Values(dirs), "nft", "iptables-restore", notWrapper)
		if got != want || !errors.Is(err, test.err) {
			t.Errorf("%s: got %q, %v, want %q, %v", test.doc, got, err, want, test.err)
		}
	}
}

// Who cannot read a program cannot tell it from a wrapper.
func TestFindUnreadable(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "be another user: run it as root")
	}
	d := t.TempDir()
	if err := os.Chmod(filepath.Dir(d), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d, "xtables-nft-multi"), []byte(marker), 0o711); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // never unlocked, so that the thread ends with the test
	if err := unix.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	defer unix.Setfsuid(0)
	path, err := find(slices.Values([]string{d}), "nft", "iptables", notWrapper)
	if path != "" || !errors.Is(err, unix.EACCES) {
		t.Errorf("got %q, %v", path, err)
	}
}
