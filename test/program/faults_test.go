// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"fmt"
	"maps"
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

// asking are those by which a backend is asked, and the record is found. If one fails, the guess may be the other
// backend.
var asking = strings.Fields("socket sendto recvfrom getsockopt openat read newfstatat fstatfs")

// Each system call on the way to the program, and of select and reset, fails, one by one; in "make test" one in 24.
// Whatever fails, the right program runs or one line says why not; no name is broken; there are never two backends; and
// the next call is as good as the first.
func TestFaults(t *testing.T) {
	inScenes(t, func(t *testing.T, s *scene) {
		made := s.made(t)
		failed := 0
		for _, call := range slices.Sorted(maps.Keys(made)) {
			struck := !slices.Contains(spared, call)
			for when := 1; struck && (when <= made[call] || host.All()); when += host.Number(24, 1) {
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
					s.right(t, append(wrong, s.recovers(t, s.due())...), e)
				}
			}
		}
		if failed < 12 {
			t.Errorf("only %d calls failed", failed)
		}
	})
}

// A process is killed before each of its system calls that change something. At every such instant each name works,
// there are not two backends, and the next call or command is as good as the first.
func TestKilledAtEachCall(t *testing.T) {
	inScenes(t, func(t *testing.T, s *scene) {
		made := s.made(t)
		made["execve"]++ // that of the program ends the list
		killed := 0
		for _, call := range changing {
			for when := 1; when <= made[call] || host.All(); when++ {
				e := s.strike(t, call, fmt.Sprintf("signal=KILL:when=%d", when))
				if e.struck == "" {
					break
				}
				killed++
				s.right(t, append(s.check(t), s.recovers(t, s.due())...), e)
			}
		}
		if killed == 0 {
			t.Error("no call was killed")
		}
	})
}

// made is how often the scene's command makes each call where nothing fails. In make test, no other is waited for.
func (s *scene) made(t *testing.T) map[string]int {
	t.Helper()
	number := map[string]int{}
	for _, call := range s.strike(t, "all", "").calls {
		number[call]++
	}
	return number
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
	said := strings.HasPrefix(lines[0], "iptables-wrapper: ") && len(lines) <= 2 &&
		(len(lines) == 1 && s.isCommand() || strings.HasPrefix(lines[len(lines)-1], "iptables-wrapper: try: "))
	switched := 0
	for _, command := range host.Commands {
		if !isOurs(host.End(command)) {
			switched++
		}
	}
	all := switched == len(host.Commands)
	record := recorded()
	ran := e.status == 0 && e.stderr == "" && e.program != ""
	isRecorded := record == "" || strings.Contains(e.program, "-"+record)
	switch {
	case s.isCommand() && e.status == 0 && (s.backend == "" && switched == 0 || s.backend != "" && all):
	case s.isCommand() && e.status == 1 && said:
	case ran && strings.Contains(e.program, "-"+s.backend) && (isRecorded || all || s.then != ""):
	case ran && switched == 0 && slices.Contains(asking, failed) && (isRecorded || s.then != ""):
	case (e.status == 126 || e.status == 127) && e.stdout == "" && said && (switched == 0 || failed == "execve"):
	default:
		wrong = append(wrong, fmt.Sprintf("an unexpected end, %d names switched, %q recorded", switched, record))
	}
	return wrong
}

// check returns what must not be at any time: a name that is broken, and two backends.
func (s *scene) check(t *testing.T) (wrong []string) {
	t.Helper()
	found := map[string]string{} // where each backend was found
	wrapped := false
	for _, name := range host.Commands {
		switch got := host.End(name); {
		case isOurs(got):
			wrapped = true
		case strings.HasPrefix(got, "/usr/sbin/xtables-"):
			found[strings.Split(filepath.Base(got), "-")[1]] = name
		default:
			wrong = append(wrong, fmt.Sprintf("%s points to %s", name, got))
		}
	}
	if record := recorded(); wrapped && record != "" {
		found[record] = "record"
	}
	if len(found) > 1 {
		wrong = append(wrong, fmt.Sprintf("two backends: %v", found))
	}
	return wrong
}

// due is the backend that the next call must run: what is recorded, if no name proves the host's.
func (s *scene) due() string {
	record := recorded()
	if s.guess && record != "" {
		return record
	}
	return s.backend
}

// recovers returns what is wrong with the calls after a disturbed one. Each must run the backend that is due, and
// nothing must be left behind for ever.
func (s *scene) recovers(t *testing.T, backend string) (wrong []string) {
	t.Helper()
	if s.isCommand() {
		host.Run(t, s.call[0], s.call[1:]...)
	}
	for _, name := range []string{"ip6tables-restore", "iptables"}[:host.Number(1, 2)] { // check follows the others
		got, err := exec.Command("/usr/sbin/"+name, "--version").CombinedOutput()
		if want := version[backend]; err != nil || !strings.Contains(string(got), want) {
			wrong = append(wrong, fmt.Sprintf("the next call of %s: %v, %q", name, err, got))
		}
	}
	wrong = append(wrong, s.check(t)...)
	// What changes the switch also uses up what a killed process left of it. One link may stay of a record, and of a
	// name, each of which is made once.
	if len(litter(t)) > 0 {
		for _, other := range []string{"legacy", "nft"} {
			_ = exec.Command("iptables-wrapper", "select", other).Run()
		}
		left := litter(t)
		if len(left) > 1 || len(left) == 1 && strings.HasSuffix(left[0], "iptables-current.new") {
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
