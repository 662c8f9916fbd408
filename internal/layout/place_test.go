// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// By what path the command was called, beside what locate_test.go has: relative paths, ".." after a link, a script.
func TestPlaceByPath(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "sbin/", "sbin/iptables-wrapper", "sbin/iptables-current -> iptables-wrapper",
		"sbin/iptables -> iptables-current", "copied/", "copied/iptables = sbin/iptables-wrapper",
		"moved/", "moved/iptables-wrapper = sbin/iptables-wrapper", "moved/xtables-nft-multi",
		"moved/iptables-current -> xtables-nft-multi", "moved/iptables -> iptables-current",
		"replaced/", "replaced/iptables-wrapper", "replaced/iptables-current -> ../moved/xtables-nft-multi",
		"replaced/iptables -> iptables-current",
		"deep/", "deep/er/", "link -> deep/er", "deep/iptables = sbin/iptables-wrapper",
		"iptables -> sbin/iptables-current",
		"script", "current/", "current/iptables-current = sbin/iptables-wrapper")
	running := idOf(t, top+"/sbin/iptables-wrapper")
	t.Chdir(top + "/sbin")
	for _, test := range []struct {
		doc, path, directory string
		laid                 bool
	}{
		{
			doc: "relative", path: "./iptables", directory: top + "/sbin/.", laid: true,
		},
		{
			doc: "relative, elsewhere", path: "../copied/iptables", directory: top + "/sbin/../copied",
		},
		{
			doc: `".." after a link leads to where the link leads`, path: top + "/link/../iptables",
			directory: top + "/link/..",
		},
		{
			doc: "a link in another directory", path: top + "/iptables", directory: top + "/sbin", laid: true,
		},
		{
			doc: "the switch was moved since", path: top + "/moved/iptables", directory: top + "/moved", laid: true,
		},
		{
			doc: "the switch was moved since, beside another wrapper", path: top + "/replaced/iptables",
		},
		{
			doc: "the switch is the file", path: top + "/current/iptables-current", directory: top + "/current",
			laid: true,
		},
		{doc: "a script", path: top + "/script"},
		{doc: "a bare name", path: "iptables"},
		{doc: "nothing", path: ""},
		{doc: "a directory", path: "/"},
	} {
		got := Locate(test.path, running)
		directory := ""
		if got.Dir != nil {
			directory = got.Dir.Path()
			got.Dir.Close()
		}
		if directory != test.directory || got.Laid != test.laid {
			t.Errorf("%s: got %q, laid: %t", test.doc, directory, got.Laid)
		}
		if got.Dir != nil && (got.Command != test.path || got.Running != running) {
			t.Errorf("%s: got %+v", test.doc, got)
		}
	}
}

// A path loses its last element, and nothing else.
func TestParent(t *testing.T) {
	for path, want := range map[string]string{
		"iptables": ".", "./iptables": ".", "/iptables": "/", "/usr/sbin/iptables": "/usr/sbin",
		"link/../iptables": "link/..", "//iptables": "/",
	} {
		if got := parent(path); got != want {
			t.Errorf("%s: got %s", path, got)
		}
	}
}

// The running file's path is its own, rather than that of a link by which it was executed. If iptables is there, that
// is the directory that is meant without --dir.
func TestRunningPath(t *testing.T) {
	self, err := os.Executable()
	host.Check(t, err)
	top, err := filepath.EvalSymlinks(t.TempDir())
	host.Check(t, err)
	grow(t, top, "here/", "here/iptables", "link -> here/file")
	host.Check(t, os.WriteFile(top+"/here/file", host.Read(t, self), 0o755))
	cmd := exec.Command(top + "/link")
	cmd.Env = append(os.Environ(), printsRunning+"=1")
	if got, want := host.Output(t, cmd), top+"/here/file "+top+"/here\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Otherwise it is the first standard directory with iptables.
func TestDefaultDirectory(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Run(t, "sh", "-c", "rm /usr/sbin/*tables*; mount -t tmpfs none /usr/local/sbin")
	if got := DefaultDirectory(); got != "" {
		t.Errorf("no iptables: got %q", got)
	}
	for _, name := range []string{"iptables -> gone", "ip6tables-restore", "iptables-nft", "xtables-legacy-multi"} {
		grow(t, "/usr/local/sbin", name)
		if got := DefaultDirectory(); got != "/usr/local/sbin" {
			t.Errorf("%s: got %q", name, got)
		}
		host.Run(t, "sh", "-c", "rm /usr/local/sbin/*")
	}
	grow(t, "/usr/local/sbin", "iptables")
	grow(t, "/usr/sbin", "iptables")
	if got := DefaultDirectory(); got != "/usr/sbin" {
		t.Errorf("the first one: got %q", got)
	}
	beside := parent(RunningPath())
	host.Run(t, "mount", "-t", "tmpfs", "none", beside) // the file stays what runs, and its path leads nowhere
	defer host.Run(t, "umount", beside)
	if got := DefaultDirectory(); got != "/usr/sbin" {
		t.Errorf("the running file has no path: got %q", got)
	}
}
