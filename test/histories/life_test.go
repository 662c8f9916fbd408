// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	var s side
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "*"):
			s.table = true
		case strings.HasPrefix(line, "-A "):
			s.rules++
		case strings.HasPrefix(line, ":KUBE-IPTABLES-HINT "):
			s.hint = true
		case strings.HasPrefix(line, ":KUBE-KUBELET-CANARY "):
			s.canary = true
		}
		b.WriteString(line)
	}
	s.text = b.String()
	return s
}

// A life is a container from the start of its process 1 to its end.
type life struct {
	dir    string // $H
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// A result is how a command ended, and what there is afterwards.
type result struct {
	status         int
	stdout, stderr string
	kernel         kernel
	sw             string // the backend that the switch points to, "" if it is the wrapper
	names          string // what is wrong with the names
}

// begin starts a life in the network namespace of this thread.
func begin(dir, image, fresh string, env []string) (*life, error) {
	l := &life{dir: dir, cmd: exec.Command("sh", "-e", "-c", containerScript)}
	l.cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "H=" + dir, "IMAGE=" + image, "NEW=" + fresh}, env...)
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errors, err := os.Create(filepath.Join(dir, "errors"))
	if err != nil {
		return nil, err
	}
	defer errors.Close()
	l.cmd.Stderr = errors
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.stdout = bufio.NewReader(stdout)
	if err := l.cmd.Start(); err != nil {
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
	if _, err := fmt.Fprintf(l.stdin, "{ %s\n} </dev/null >$H/out 2>$H/err; status=$?; for mode in nft legacy; do saved $mode >$H/$mode; done; echo $status\n", command); err != nil {
		return r, err
	}
	line, err := l.stdout.ReadString('\n')
	if err != nil {
		said, _ := os.ReadFile(filepath.Join(l.dir, "errors"))
		return r, fmt.Errorf("%s: the container ended: %w: %s", command, err, said)
	}
	if r.status, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		return r, err
	}
	var content [4]string
	for i, name := range []string{"out", "err", "nft", "legacy"} {
		file, err := os.ReadFile(filepath.Join(l.dir, name))
		if err != nil {
			return r, err
		}
		content[i] = string(file)
	}
	r.stdout, r.stderr, r.kernel = content[0], content[1], kernel{parseSide(content[2]), parseSide(content[3])}
	r.sw, r.names = l.layout()
	return r, nil
}

// layout looks at the six names.
func (l *life) layout() (sw, wrong string) {
	sbin := filepath.Join(l.dir, "sbin")
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		if target, err := os.Readlink(filepath.Join(sbin, name)); target != "iptables-current" {
			wrong = fmt.Sprintf("%s points to %q (%v)", name, target, err)
		}
	}
	target, err := os.Readlink(filepath.Join(sbin, "iptables-current"))
	target = filepath.Base(target)
	switch sw = strings.TrimSuffix(strings.TrimPrefix(target, "xtables-"), "-multi"); {
	case target == "iptables-wrapper":
		sw = ""
	case sw != "nft" && sw != "legacy":
		wrong = fmt.Sprintf("the switch points to %q (%v)", target, err)
	}
	return sw, wrong
}
