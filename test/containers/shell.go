// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"bufio"
	_ "embed"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

//go:embed container.sh
var containerScript string

// shell is a host: a shell in a network namespace of its own, which gets one line after the other.
type shell struct {
	stdin  io.WriteCloser
	pipe   io.Closer
	stdout *bufio.Reader
	cmd    *exec.Cmd
	log    []string
	t      *testing.T
}

func open(t *testing.T) *shell {
	cmd := exec.Command("unshare", "--net", "sh", "-s")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		host.Cannot(t, "start a shell in a network namespace: %v", err)
	}
	sh := &shell{stdin, stdout, bufio.NewReader(stdout), cmd, nil, t}
	sh.run(containerScript)
	sh.log = nil
	return sh
}

func (sh *shell) close() {
	sh.stdin.Close()
	_ = sh.cmd.Wait() // the status of the last line
}

// run returns what a line prints, and its status.
func (sh *shell) run(line string) (output string, status int) {
	const end = "\x01end "
	sh.log = append(sh.log, line)
	if _, err := io.WriteString(sh.stdin, line+"\nprintf '\\n\\001end %d\\n' $?\n"); err != nil {
		sh.t.Fatal(err)
	}
	hangs := time.AfterFunc(2*time.Minute, func() { _ = sh.cmd.Process.Kill(); sh.pipe.Close() })
	defer hangs.Stop()
	var all strings.Builder
	for {
		text, err := sh.stdout.ReadString('\n')
		if number, found := strings.CutPrefix(text, end); found {
			status, err = strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				sh.t.Fatal(err)
			}
			return strings.TrimSpace(all.String()), status
		}
		all.WriteString(text)
		if err != nil {
			sh.t.Fatalf("%v: %s\n%s", err, all.String(), strings.Join(sh.log, "\n"))
		}
	}
}
