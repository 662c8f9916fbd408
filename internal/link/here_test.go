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
}

// A call by another name, and through links, has the directory of the file. What has replaced the file since has none.
func TestHere(t *testing.T) {
	self, err := os.Executable()
	host.Check(t, err)
	program := host.Read(t, self)
	for _, test := range []struct {
		doc    string
		change func(sbin string) error
		want   string // after the path of the directory, "" if there is none
	}{
		{doc: "as it was", change: func(string) error { return nil }, want: "/sbin iptables-wrapper"},
		{doc: "replaced by another file", change: func(sbin string) error {
			return errors.Join(os.WriteFile(sbin+"/new", program, 0o755), os.Rename(sbin+"/new", sbin+"/iptables-wrapper"))
		}},
		{doc: "replaced by a link to itself", change: func(sbin string) error {
			return errors.Join(os.Link(sbin+"/iptables-wrapper", sbin+"/hard"), os.Symlink("hard", sbin+"/new"),
				os.Rename(sbin+"/new", sbin+"/iptables-wrapper"))
		}},
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
		host.Check(t, test.change(top+"/sbin"))
		host.Check(t, stdin.Close())
		host.Check(t, cmd.Wait())
		got := strings.TrimSpace(output.String())
		if want := top + test.want; test.want != "" && got != want || test.want == "" && strings.HasPrefix(got, top) {
			t.Errorf("%s: got %q", test.doc, got)
		}
	}
}
