// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// errnos are those with which calls fail, whether their man pages have them or not. Not among them are EPROTONOSUPPORT
// for a socket and ENOENT for a file, which are answers.
var errnos = strings.Fields("EIO ENOSPC EACCES EPERM EMFILE ENOMEM EINTR EAGAIN EROFS EINVAL ELOOP")

// spared are calls that have no errors of their own, that only print, or that Go's runtime makes when it needs them.
var spared = strings.Fields(`
	geteuid getuid getegid getgid rt_sigaction sigaltstack close exit_group uname getrandom sched_getaffinity
	arch_prctl write fcntl futex mmap madvise munmap clone clone3 nanosleep sched_yield
	rt_sigreturn rt_sigprocmask tgkill getpid gettid
	prctl epoll_create1 epoll_pwait epoll_ctl eventfd2 prlimit64`)

// changing are the calls that change something, and the last one. A process that is killed before any other call leaves
// behind what it would before the next of these.
var changing = strings.Fields("symlinkat linkat renameat unlinkat execve")

// asking are those by which a backend is asked. If one fails, the guess may be the other backend; it is never kept.
var asking = strings.Fields("socket sendto recvfrom getsockopt openat read")

// passing are the errors after which a guess is not stored: the next call may not meet them again, or they say that a
// question is not permitted.
var passing = strings.Fields("EMFILE ENOMEM EINTR EAGAIN EPERM")

// Each system call on the way to the program, and of select and reset, fails, one by one; in "make test" one in 16.
// Whatever fails, the right program runs or one line says why not; no name is broken; there are never two backends; and
// the next call is as good as the first.
func TestFaults(t *testing.T) {
	inScenes(t, func(t *testing.T, s *scene) {
		calls := slices.Compact(slices.Sorted(slices.Values(s.strike(t, "all", "").calls)))
		failed := 0
		for _, call := range calls {
			for when, struck := 1, !slices.Contains(spared, call); struck; when += host.Number(16, 1) {
				for range host.Number(1, 3) {
					failed++
					errno := errnos[failed%len(errnos)]
					e := s.strike(t, call, fmt.Sprintf("error=%s:when=%d", errno, when))
					struck = struck && e.struck != ""
					if !struck {
						break
					}
					wrong := append(s.judge(t, call, e), s.check(t)...)
					if left := litter(t); len(left) > 0 && call != "unlinkat" {
						wrong = append(wrong, fmt.Sprintf("left behind: %v", left))
					}
					s.right(t, append(wrong, s.recovers(t, s.due(call, errno))...), e)
				}
			}
		}
		if failed < 15 {
			t.Errorf("only %d calls failed", failed)
		}
	})
}

// A process is killed before each of its system calls that change something. At every such instant each name works,
// there are not two backends, and the next call or command is as good as the first.
func TestKilledAtEachCall(t *testing.T) {
	inScenes(t, func(t *testing.T, s *scene) {
		killed := 0
		for _, call := range changing {
			for when := 1; ; when++ {
				e := s.strike(t, call, fmt.Sprintf("signal=KILL:when=%d", when))
				if e.struck == "" {
					break
				}
				killed++
				s.right(t, append(s.check(t), s.recovers(t, s.mode)...), e)
			}
		}
		if killed == 0 {
			t.Error("no call was killed")
		}
	})
}

func (s *scene) right(t *testing.T, wrong []string, e ended) {
	t.Helper()
	if len(wrong) > 0 {
		t.Errorf("%s: %+v:\n%s", s.doc, e, strings.Join(wrong, "\n"))
	}
}

// ended is how a scene's command ended.
type ended struct {
	status         int
	stdout, stderr string
	calls          []string // the names of those that its first thread made before it became the program
	struck         string   // the one that failed, or before which it was killed, as strace writes it
	program        string   // what it became
}

// strike runs the scene's command once. One of its calls fails or kills it, unless there are not so many of them in
// this run.
func (s *scene) strike(t *testing.T, call, how string) (e ended) {
	t.Helper()
	s.restore(t)
	file := filepath.Join(t.TempDir(), "trace")
	args := []string{"-qq", "-s", "200", "-o", file}
	if how != "" {
		args = append(args, "-e", "trace=execve,"+call, "-e", "inject="+call+":"+how)
	}
	cmd := exec.Command("strace", append(args, s.call...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	e = ended{status: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	last := ""
	for line := range strings.Lines(read(t, file)) {
		line = strings.TrimSpace(line)
		name, rest, isCall := strings.Cut(line, "(")
		isCall = isCall && !strings.Contains(name, " ")
		switch {
		case strings.Contains(line, "(INJECTED)"):
			e.struck = line
		case strings.HasPrefix(line, "+++ killed by SIGKILL"):
			e.struck = last
		case name == "execve" && strings.HasSuffix(line, " = 0") && len(e.calls) > 0:
			e.program = filepath.Base(strings.Split(rest, `"`)[1])
			return e // what fails later is not the wrapper's
		}
		last = line
		if isCall {
			e.calls = append(e.calls, name)
		}
	}
	return e
}

// judge returns what is wrong with how a call ended.
func (s *scene) judge(t *testing.T, failed string, e ended) (wrong []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(e.stderr), "\n")
	hint, most := "iptables-wrapper: try: ", 2
	if s.isCommand() {
		hint, most = "iptables-wrapper: ", 3 // neither the switch nor a memory could be changed, and a hint
	}
	said := strings.HasPrefix(lines[0], "iptables-wrapper: ") && len(lines) <= most &&
		!slices.ContainsFunc(lines[1:], func(line string) bool { return !strings.HasPrefix(line, hint) })
	switched := len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return isOurs(host.End(name)) }))
	memory := remembered()
	ran := e.status == 0 && e.stderr == "" && e.program != ""
	free := memory == "" || s.guess || s.then != "" // what runs need not be what is remembered
	switch {
	case s.isCommand() && e.status == 0 && (s.mode == "" || switched == len(names) || memory == s.mode):
	case s.isCommand() && e.status == 1 && said:
	case ran && strings.Contains(e.program, "-"+s.mode) && (free || memory == s.mode):
	case ran && switched == 0 && (slices.Contains(asking, failed) || s.guess) &&
		(free || strings.Contains(e.program, "-"+memory)):
	case (e.status == 126 || e.status == 127) && e.stdout == "" && said && (switched == 0 || failed == "execve"):
	default:
		wrong = append(wrong, fmt.Sprintf("an unexpected end, %d names switched, %q remembered", switched, memory))
	}
	return wrong
}

// check returns what must not be at any time: a name that is broken, and two backends.
func (s *scene) check(t *testing.T) (wrong []string) {
	t.Helper()
	found := map[string]string{} // where each backend was found
	wrapped := false
	for _, name := range names {
		switch got := host.End(name); {
		case isOurs(got):
			wrapped = true
		case strings.HasPrefix(got, "/usr/sbin/xtables-"):
			found[strings.Split(filepath.Base(got), "-")[1]] = name
		default:
			wrong = append(wrong, fmt.Sprintf("%s points to %s", name, got))
		}
	}
	if mode := remembered(); wrapped && mode != "" {
		found[mode] = "memory"
	}
	if len(found) > 1 {
		wrong = append(wrong, fmt.Sprintf("two backends: %v", found))
	}
	return wrong
}

// due is the backend that the next call must run. If a question met with an error that lasts, the guess binds, but for
// kubelet.
func (s *scene) due(call, errno string) string {
	said := remembered()
	guessed := slices.Contains(asking, call) && !slices.Contains(passing, errno)
	if guessed && said != "" && !s.isCommand() && !strings.Contains(s.host+s.then, "KUBE-") {
		return said
	}
	return s.mode
}

// recovers returns what is wrong with the calls after a disturbed one. Each must run the backend that is due, and
// nothing must be left behind for ever.
func (s *scene) recovers(t *testing.T, mode string) (wrong []string) {
	t.Helper()
	if s.isCommand() {
		host.Run(t, s.call[0], s.call[1:]...)
	}
	for _, name := range []string{"ip6tables-restore", "iptables"}[:host.Number(1, 2)] { // check follows the others
		got, err := exec.Command("/usr/sbin/"+name, "--version").CombinedOutput()
		if want := version[mode]; err != nil || !strings.Contains(string(got), want) {
			wrong = append(wrong, fmt.Sprintf("the next call of %s: %v, %q", name, err, got))
		}
	}
	wrong = append(wrong, s.check(t)...)
	// What moves the links also uses up what a killed process left, but for one of the six names, which is laid once.
	isName := func(path string) bool {
		return slices.Contains(names, strings.TrimSuffix(filepath.Base(path), ".new"))
	}
	if len(litter(t)) > 0 {
		for _, other := range []string{"legacy", "nft", "legacy"} { // on a read-only root, none against kubelet's hint
			_ = exec.Command("iptables-wrapper", "select", "--mode", other).Run()
		}
		left := litter(t)
		if rest := slices.DeleteFunc(slices.Clone(left), isName); len(left) > 1 || len(rest) > 0 {
			wrong = append(wrong, fmt.Sprintf("left behind: %v", left))
		}
	}
	return wrong
}

var version = map[string]string{"nft": "(nf_tables)", "legacy": "(legacy)", "": ""}

// isOurs reports whether a path at which a name ended is the wrapper's file.
func isOurs(path string) bool {
	ours, err := os.Stat(os.Getenv(host.WrapperVariable))
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == ours.Size()
}
