// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
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
		d, err := OpenRunning(running)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Path, d.Running)
	},
	"own":        func() { fmt.Println(OwnContainer(), OwnNetwork()) },
	"leaderless": leaderless,
}

// A call by another name, and through links, has the directory of the file. It has none if a mount covers the file, in
// which another one has its path.
func TestHere(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	self, err := os.Executable()
	host.Check(t, err)
	program := host.Read(t, self)
	for _, covered := range []bool{false, true} {
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
		if covered {
			host.Check(t, unix.Mount("none", top+"/sbin", "tmpfs", 0, "mode=755"))
			defer unix.Unmount(top+"/sbin", unix.MNT_DETACH)
			host.Check(t, os.WriteFile(top+"/sbin/iptables-wrapper", program, 0o755))
		}
		host.Check(t, stdin.Close())
		host.Check(t, cmd.Wait())
		if got := output.String(); (got == top+"/sbin iptables-wrapper\n") == covered {
			t.Errorf("covered: %v, got %q", covered, got)
		}
	}
}
