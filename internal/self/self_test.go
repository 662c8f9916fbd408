// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// The path by which the wrapper was called counts only if it resolves to the running executable, and a bare argv[0]
// never does.
func TestLocate(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command := filepath.Join(dir, "iptables")
	script := filepath.Join(dir, "script")
	other := filepath.Join(dir, "xtables-nft-multi")
	err = errors.Join(
		os.Symlink(exe, command),
		os.WriteFile(script, []byte("#!"+command+"\n"+programs.Marker()), 0o755),
		os.WriteFile(other, nil, 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, test := range []struct{ executed, name, want string }{
		{command, "iptables", command}, {command, "anything", command}, {"iptables", "iptables", "iptables"},
		{script, command, command}, // "#!": the kernel makes argv[0] the interpreter's path
		{script, "iptables", ""},   // a bare name, although the working directory has it
		{script, "./iptables", "./iptables"},
		{script, script, ""}, {other, other, ""}, {"", "", ""}, {filepath.Join(dir, "gone"), "iptables", ""},
	} {
		var p Process
		p.locate(test.executed, test.name)
		if p.Called != test.want {
			t.Errorf("%q, %q: got %q, want %q", test.executed, test.name, p.Called, test.want)
		}
		if path, err := p.Path(); err != nil || !(tree.Tree{}).SameFile(path, exe) {
			t.Errorf("%q, %q: the executable is %q, %v", test.executed, test.name, path, err)
		}
	}
}

// Programs are looked for beside the path that was called, beside the executable and in the standard directories;
// only in these for a caller that is not trusted; and never in the working directory.
func TestDirs(t *testing.T) {
	standard := programs.StandardDirs()
	for _, test := range []struct {
		doc    string
		p      Process
		called string
		want   []string
	}{
		{
			doc:    "a path",
			p:      Process{Executable: "/opt/iptables-wrapper"},
			called: "/x/iptables",
			want:   slices.Concat([]string{"/x", "/opt"}, standard),
		},
		{
			doc:    "a bare name",
			p:      Process{Executable: "/opt/iptables-wrapper"},
			called: "iptables",
			want:   slices.Concat([]string{"/opt"}, standard),
		},
		{
			doc:  "no name",
			p:    Process{Executable: "/usr/sbin/iptables-wrapper"},
			want: standard,
		},
		{
			doc:    "once",
			p:      Process{Executable: "/usr/sbin/iptables-wrapper"},
			called: "/sbin/iptables",
			want:   []string{"/sbin", "/usr/sbin", "/usr/local/sbin", "/usr/bin"},
		},
		{
			doc:    "set-user-ID",
			p:      Process{Executable: "/opt/iptables-wrapper", Secure: true, SetID: true},
			called: "/x/iptables",
			want:   standard,
		},
		{
			doc:    "file capabilities",
			p:      Process{Executable: "/opt/iptables-wrapper", Secure: true},
			called: "/x/iptables",
			want:   slices.Concat([]string{"/x", "/opt"}, standard),
		},
	} {
		got := slices.Collect(test.p.dirs(tree.Tree{}, test.called))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.doc, got, test.want)
		}
	}
}

// A program that exists and cannot be executed is not missing.
func TestFindBoth(t *testing.T) {
	dir := t.TempDir()
	p := Process{Executable: filepath.Join(dir, "iptables-wrapper")}
	root, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		files map[string]os.FileMode
		only  detect.Mode
	}{
		{nil, ""}, {map[string]os.FileMode{"xtables-nft-multi": 0o755}, detect.NFT},
		{map[string]os.FileMode{"iptables-legacy": 0o755}, detect.Legacy},
		{map[string]os.FileMode{"xtables-nft-multi": 0o755, "iptables-legacy": 0o644}, ""},
		{map[string]os.FileMode{"xtables-nft-multi": 0o755, "xtables-legacy-multi": 0o755}, ""},
		{map[string]os.FileMode{"xtables-nft-multi": 0o644}, ""},
		{map[string]os.FileMode{"xtables-nft-multi": 0o755, "iptables-legacy": 0o700}, ""}, // a wrapper
	} {
		sbin := filepath.Join(dir, "usr/sbin")
		if err := errors.Join(os.RemoveAll(sbin), os.MkdirAll(sbin, 0o755)); err != nil {
			t.Fatal(err)
		}
		for file, mode := range test.files {
			content := "program"
			if mode == 0o700 {
				content = "\x7fELF" + programs.Marker()
			}
			if err := os.WriteFile(filepath.Join(sbin, file), []byte(content), mode); err != nil {
				t.Fatal(err)
			}
		}
		both := p.FindBoth(root, "", "iptables")
		if both.Only() != test.only {
			t.Errorf("%v: got %q, want %q: %v", test.files, both.Only(), test.only, both.Errors)
		}
	}
}

// Of several programs that cannot be executed, the first is named: it is the one to mend.
func TestFirstUnusable(t *testing.T) {
	dir := t.TempDir()
	root, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, sbin := range []string{"/usr/sbin", "/usr/local/sbin"} {
		file := filepath.Join(dir, sbin, "xtables-nft-multi")
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = Process{}.Find(root, "", detect.NFT, "iptables")
	if !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), " /usr/sbin/xtables-nft-multi") {
		t.Errorf("got %v", err)
	}
}

// What is known of the running executable says nothing of another tree: its directory is not searched there, and a
// copy of the wrapper is one by its marker.
func TestOtherTree(t *testing.T) {
	dir := t.TempDir()
	root, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	wrapper := []byte("\x7fELF" + programs.Marker())
	err = errors.Join(
		os.MkdirAll(filepath.Join(dir, "opt"), 0o755),
		os.MkdirAll(filepath.Join(dir, "usr/sbin"), 0o755),
		os.WriteFile(filepath.Join(dir, "opt/xtables-nft-multi"), []byte("program"), 0o755),
		os.WriteFile(filepath.Join(dir, "usr/sbin/xtables-legacy-multi"), wrapper, 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	self, err := tree.Tree{}.Stat("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	p := Process{Executable: "/opt/iptables-wrapper", file: tree.IDOf(self)}
	path, err := p.Find(root, "", detect.NFT, "iptables")
	if !errors.Is(err, programs.ErrMissing) {
		t.Errorf("beside the executable, in another tree: got %q, %v", path, err)
	}
	path, err = p.Find(root, "", detect.Legacy, "iptables")
	if !errors.Is(err, programs.ErrRecursion) {
		t.Errorf("another copy of the wrapper: got %q, %v", path, err)
	}
}

// The variable decides, unless the process has privileges that its caller has not.
func TestOverride(t *testing.T) {
	for _, test := range []struct {
		value string
		setID bool
		want  detect.Mode
		fails bool
	}{
		{value: "", want: ""},
		{value: "nft", want: detect.NFT},
		{value: "legacy", want: detect.Legacy},
		{value: "iptables", fails: true},
		{value: "nft", setID: true, want: ""},
		{value: "iptables", setID: true, want: ""},
	} {
		t.Setenv(programs.ModeVariable, test.value)
		got, err := Process{SetID: test.setID}.Override()
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%+v: got %q, %v", test, got, err)
		}
	}
}
