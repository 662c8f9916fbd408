// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var (
	//go:embed image.sh
	imageScript string
	//go:embed container.sh
	containerScript string
	//go:embed prelude.sh
	preludeScript string
)

// Settings are variables of container.sh.
type settings struct {
	Root  string // rw, ro
	Dev   string // own: the container's own tmpfs; host
	Shm   string // sticky, plain (0777), absent, full
	Run   string // rw, ro
	Init  int    // whose process 1 is
	Group int    // of user 65534: of group 0, it can list legacy's tables
}

func (s settings) environment() []string {
	return []string{"ROOT=" + s.Root, "DEV=" + s.Dev, "SHM=" + s.Shm, "RUN=" + s.Run, fmt.Sprint("INIT=", s.Init), fmt.Sprint("GROUP=", s.Group)}
}

// A side is what iptables-save and ip6tables-save of one backend print.
type side struct {
	text         string
	rules        int
	hint, canary bool
	table        bool // one of the five exists
}

// has says whether a rule is there, by its source.
func (s side) has(source string) bool { return strings.Contains(s.text, "-s "+source+"/") }

type kernel struct{ nft, legacy side }

func (k *kernel) of(mode string) *side {
	if mode == "nft" {
		return &k.nft
	}
	return &k.legacy
}

func parseSide(text string) side {
	s := side{text: text}
	for line := range strings.Lines(text) {
		s.table = s.table || strings.HasPrefix(line, "*")
		s.hint = s.hint || strings.HasPrefix(line, ":KUBE-IPTABLES-HINT ")
		s.canary = s.canary || strings.HasPrefix(line, ":KUBE-KUBELET-CANARY ")
		if strings.HasPrefix(line, "-A ") {
			s.rules++
		}
	}
	return s
}

// A life is a container from the start of its process 1 to its end.
type life struct {
	dir    string // $H
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
}

// A result is how a command ended, and what there is afterwards.
type result struct {
	status         int
	stdout, stderr string
	kernel         kernel
	backend        string // that the output names
	sw             string // the backend that the switch points to, "" if it is the wrapper
	names          string // what is wrong with the names
	outcome        string // what the script sees of all this
}

// begin starts a life in the network namespace of this thread.
func begin(dir, image, fresh string, env []string) (*life, error) {
	l := &life{dir: dir, cmd: exec.Command("sh", "-e", "-c", containerScript)}
	l.cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "H=" + dir, "IMAGE=" + image, "NEW=" + fresh}, env...)
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	l.cmd.Stderr = os.Stderr
	var err, outErr error
	l.stdin, err = l.cmd.StdinPipe()
	l.stdout, outErr = l.cmd.StdoutPipe()
	if err := errors.Join(err, outErr, l.cmd.Start()); err != nil {
		return nil, err
	}
	_, err = io.WriteString(l.stdin, preludeScript)
	return l, err
}

// end is that of process 1, and so of all others.
func (l *life) end() {
	l.stdin.Close()
	killer := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL) })
	defer killer.Stop()
	_ = l.cmd.Wait()
}

// do runs a command and looks at the kernel and the names afterwards.
func (l *life) do(command string) (r result, err error) {
	killer := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL) })
	defer killer.Stop()
	if _, err := fmt.Fprintf(l.stdin, "{ %s\n} </dev/null >$H/out 2>$H/err; ran=$?; look; echo $ran\n", command); err != nil {
		return r, err
	}
	if _, err := fmt.Fscanln(l.stdout, &r.status); err != nil {
		return r, fmt.Errorf("%s: the container ended: %w", command, err)
	}
	var nft, legacy string
	for name, content := range map[string]*string{"out": &r.stdout, "err": &r.stderr, "nft": &nft, "legacy": &legacy, "names": &r.names, "backend": &r.backend, "outcome": &r.outcome} {
		file, err := os.ReadFile(filepath.Join(l.dir, name))
		if err != nil {
			return r, err
		}
		*content = strings.TrimSpace(string(file))
	}
	r.kernel = kernel{parseSide(nft), parseSide(legacy)}
	target, linked := strings.CutSuffix(r.names, strings.Repeat(" iptables-current", 6))
	switches := map[string]string{"xtables-nft-multi": "nft", "xtables-legacy-multi": "legacy", "iptables-wrapper": ""}
	if sw, known := switches[target]; known && linked {
		r.sw, r.names = sw, ""
	}
	return r, nil
}
