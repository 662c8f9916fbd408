// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// questions are what a test process can be started for, by the variable asks.
var questions = map[string]func(){
	"here": func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test has changed something
		running, err := os.Readlink(file.Running)
		if err != nil {
			fmt.Println(err)
			return
		}
		d, err := Here(running)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Path, d.Running)
	},
	"own":        func() { fmt.Println(OwnContainer(), OwnNetwork()) },
	"leaderless": leaderless,
	"switched":   printSwitched,
}

// A call by another name, and through links, has the directory of the file; what was changed since has none.
func TestHere(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	self, err := os.Executable()
	host.Check(t, err)
	program := host.Read(t, self)
	for _, test := range []struct {
		doc    string
		change func(top string) error
		want   string // after the path of the directory, "" if there is none
	}{
		{doc: "as it was", change: func(string) error { return nil }, want: "/sbin iptables-wrapper"},
		{
			doc: "the user's own", want: "/sbin iptables-wrapper",
			change: func(top string) error { return os.Chown(top+"/sbin", os.Geteuid(), 1) },
		},
		{doc: "renamed", want: "/sbin other", change: func(top string) error {
			return os.Rename(top+"/sbin/iptables-wrapper", top+"/sbin/other")
		}},
		{doc: "removed", change: func(top string) error { return os.Remove(top + "/sbin/iptables-wrapper") }},
		{doc: "replaced by another file", change: func(top string) error {
			return errors.Join(os.WriteFile(top+"/new", program, 0o755),
				os.Rename(top+"/new", top+"/sbin/iptables-wrapper"))
		}},
		{doc: "replaced by a link to itself", change: func(top string) error {
			return errors.Join(os.Link(top+"/sbin/iptables-wrapper", top+"/sbin/hard"),
				os.Symlink("hard", top+"/sbin/new"), os.Rename(top+"/sbin/new", top+"/sbin/iptables-wrapper"))
		}},
		{doc: "covered by a mount, in which another file has its path", change: func(top string) error {
			return errors.Join(unix.Mount("none", top+"/sbin", "tmpfs", 0, "mode=755"),
				os.WriteFile(top+"/sbin/iptables-wrapper", program, 0o755))
		}},
		{
			doc: "writable by all", want: "/sbin iptables-wrapper",
			change: func(top string) error { return unix.Chmod(top+"/sbin", 0o777|unix.S_ISVTX) },
		},
	} {
		top := t.TempDir()
		grow(t, top, "sbin/", "bin/", "bin/iptables -> ../sbin/iptables-wrapper")
		host.Check(t, os.WriteFile(top+"/sbin/iptables-wrapper", program, 0o755))
		cmd := exec.Command(top + "/bin/iptables")
		cmd.Env = append(os.Environ(), asks+"=here")
		var output strings.Builder
		cmd.Stdout = &output
		stdin, err := cmd.StdinPipe()
		host.Check(t, err)
		host.Check(t, cmd.Start())
		host.Check(t, test.change(top))
		host.Check(t, stdin.Close())
		host.Check(t, cmd.Wait())
		_ = unix.Unmount(top+"/sbin", unix.MNT_DETACH)
		got := strings.TrimSpace(output.String())
		if want := top + test.want; test.want != "" && got != want || test.want == "" && strings.HasPrefix(got, top) {
			t.Errorf("%s: got %q", test.doc, got)
		}
	}
}

func TestExposed(t *testing.T) {
	host.NeedsRoot(t, "give a directory away")
	for doc, expose := range map[string]func(top string) error{
		"writable by all":     func(top string) error { return unix.Chmod(top, 0o777|unix.S_ISVTX) },
		"writable by a group": func(top string) error { return os.Chmod(top, 0o775) },
		"another user's":      func(top string) error { return os.Chown(top, 1, 1) },
	} {
		top := t.TempDir()
		host.Check(t, expose(top))
		_, err := OpenTrusted(top)
		if !errors.Is(err, file.ErrExposed) {
			t.Errorf("%s: got %v", doc, err)
		}
	}
}
