// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// errnos are those that the man page of a call allows. Besides, each call fails with those of everyErrno. Not among them is
// EPROTONOSUPPORT for a socket, which is an answer: script/no-nf-tables.txtar.
var errnos = map[string]string{
	"execve":     "E2BIG EACCES EAGAIN EINVAL EISDIR ELIBBAD ELOOP EMFILE ENAMETOOLONG ENFILE ENOENT ENOEXEC ENOTDIR ETXTBSY",
	"faccessat":  "EACCES EINVAL ELOOP ENAMETOOLONG ENOENT ENOTDIR EROFS ETXTBSY",
	"flock":      "EAGAIN EBADF EINVAL ENOLCK",
	"getsockopt": "EAGAIN EBADF EFAULT EINVAL ENOENT ENOPROTOOPT ENOTSOCK",
	"linkat":     "EACCES EDQUOT EEXIST ELOOP EMLINK ENOENT ENOSPC ENOTDIR EROFS EXDEV",
	"newfstatat": "EACCES EBADF EINVAL ELOOP ENAMETOOLONG ENOENT ENOTDIR EOVERFLOW",
	"openat":     "EACCES EBUSY EINVAL EISDIR ELOOP EMFILE ENAMETOOLONG ENFILE ENODEV ENOENT ENOTDIR ENXIO EOVERFLOW",
	"read":       "EAGAIN EBADF EINVAL EISDIR",
	"readlinkat": "EACCES EBADF EINVAL ELOOP ENAMETOOLONG ENOENT ENOTDIR",
	"recvfrom":   "EAGAIN EBADF ECONNREFUSED EINVAL ENOBUFS ENOTCONN ENOTSOCK",
	"renameat":   "EACCES EBUSY EDQUOT EINVAL EISDIR ELOOP EMLINK ENAMETOOLONG ENOENT ENOSPC ENOTDIR ENOTEMPTY EROFS EXDEV",
	"sendto":     "EACCES EAGAIN EBADF ECONNREFUSED ECONNRESET EINVAL EMSGSIZE ENOBUFS ENOTCONN ENOTSOCK EOPNOTSUPP EPIPE",
	"socket":     "EACCES EAFNOSUPPORT EINVAL EMFILE ENFILE ENOBUFS",
	"symlinkat":  "EACCES EDQUOT EEXIST ELOOP ENAMETOOLONG ENOENT ENOSPC ENOTDIR EROFS",
	"unlinkat":   "EACCES EBUSY EINVAL EISDIR ELOOP ENAMETOOLONG ENOENT ENOTDIR EROFS",
}

const everyErrno = "ENOMEM EINTR EIO EPERM ENOSYS"

// usual is the errno of a call that "make test" tries; EIO for the others.
var usual = map[string]string{
	"symlinkat": "ENOSPC", "linkat": "EROFS", "openat": "EACCES", "getsockopt": "EPERM", "socket": "EMFILE", "sendto": "EPERM",
	"recvfrom": "ENOBUFS", "execve": "EACCES", "flock": "EAGAIN",
}

// cannotFail are calls that the wrapper makes and that have no errors of their own.
var cannotFail = strings.Fields("geteuid getuid getegid getgid rt_sigaction sigaltstack close exit_group uname getrandom sched_getaffinity arch_prctl")

// asks reports whether a call is part of the question to one backend, or of the question whether the answer may be kept. If
// it fails, the guess may be the other backend; it is never kept.
func asks(mode string, call step) bool {
	switch call.Name {
	case "sendto", "recvfrom":
		return mode == "nft"
	case "socket":
		return (call.On == "AF_NETLINK") == (mode == "nft")
	case "getsockopt", "read":
		return mode == "legacy"
	default:
		return mode == "legacy" && strings.HasSuffix(call.On, "_tables_names")
	}
}

// outcome is the result of a call of which one system call failed.
type outcome string

const (
	kept    outcome = "right, and all names switched"
	ran     outcome = "right, not all names switched"
	swayed  outcome = "the other backend, not switched"
	refused outcome = "an error message"
)

// fault is one system call that failed, and the result.
type fault struct {
	Step    step
	Errno   string
	Outcome outcome
}

// Each system call on the way to the program, and of select and reset, fails, one by one: in some scenes with each errno that
// it can have, in the others with three of them. Whatever fails, the right program runs or one line says why not; no name is broken; there are never two backends;
// and the next call is as good as the first.
func TestFaults(t *testing.T) {
	results, outside := resultsDir(t)
	if outside {
		defer func() { reportFaults(t, results) }()
	}
	inScenes(t, func(t *testing.T, s *scene) {
		content, err := json.Marshal(s.failEach(t))
		if err != nil {
			t.Fatal(err)
		}
		putResult(t, results, s.doc, content)
	})
}

func (s *scene) failEach(t *testing.T) (all []fault) {
	reference := s.reference(t)
	for at, call := range reference {
		if call.BeforeMain || slices.Contains(cannotFail, call.Name) || s.isCommand() && errnos[call.Name] == "" {
			continue
		}
		if errnos[call.Name] == "" {
			t.Fatalf("the wrapper calls %s, of which no errno is listed", call.Name)
		}
		for _, errno := range s.errnos(call, at) {
			if errno == "ENOENT" && strings.HasSuffix(call.On, "/if_inet6") {
				continue // an answer, too: this kernel has no IPv6
			}
			end := s.disturb(t, reference, at, "error="+errno)
			f := fault{call, errno, s.judge(t, call, end)}
			all = append(all, f)
			var wrong []string
			if f.Outcome == "" {
				wrong = append(wrong, "an unexpected end")
			}
			wrong = append(wrong, s.check(t)...)
			if left := litter(t); len(left) > 0 && call.Name != "unlinkat" {
				wrong = append(wrong, fmt.Sprintf("left behind: %v", left))
			}
			if f.Outcome != kept || s.isCommand() {
				wrong = append(wrong, s.recovers(t)...)
			}
			if len(wrong) > 0 {
				t.Errorf("%s: %+v fails with %s: %+v:\n%s", s.doc, call, errno, end, strings.Join(wrong, "\n"))
			}
		}
	}
	if len(all) == 0 {
		t.Error("nothing failed")
	}
	return all
}

// fewErrnos is how many errnos of a call are tried in a scene that is not for every one of them.
const fewErrnos = 3

// errnos are those with which a call fails in this scene.
func (s *scene) errnos(call step, at int) []string {
	all := strings.Fields(everyErrno + " " + errnos[call.Name])
	switch likely := usual[call.Name]; {
	case !host.All() && likely == "":
		return []string{"EIO"}
	case !host.All():
		return []string{likely}
	case s.every, call.Name == "linkat", call.Name == "unlinkat": // few scenes have those two
		return all
	}
	// Others in each scene, and for each call of the same name.
	first := (s.number + at) * fewErrnos % len(all)
	return slices.Concat(all, all)[first : first+fewErrnos]
}

// judge returns the result of a call, "" if that may not be.
func (s *scene) judge(t *testing.T, failed step, e ended) outcome {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(e.stderr), "\n")
	second := "iptables-wrapper: hint: "
	if s.isCommand() {
		second = "iptables-wrapper: " // neither the switch nor a memory could be changed
	}
	said := strings.HasPrefix(lines[0], "iptables-wrapper: ") && (len(lines) == 1 || len(lines) == 2 && strings.HasPrefix(lines[1], second))
	switched := 0
	for _, name := range names {
		if !isOurs(end(name)) {
			switched++
		}
	}
	memory := remembered(t)
	if s.isCommand() {
		switch {
		case e.status == 0 && (s.mode == "" || switched == len(names)):
			return kept
		case e.status == 0 && memory == s.mode:
			return ran
		case e.status == 1 && said:
			return refused
		}
		return ""
	}
	right := strings.Contains(e.program, "-"+s.mode)
	switch {
	case e.status == 0 && e.stderr == "" && right && switched == len(names) && !s.guess:
		return kept
	case e.status == 0 && e.stderr == "" && right && (memory == "" || memory == s.mode || s.guess || s.then != ""):
		return ran
	case e.status == 0 && e.stderr == "" && e.program != "" && switched == 0 && (asks(s.mode, failed) || s.guess) &&
		(memory == "" || strings.Contains(e.program, "-"+memory) || s.then != ""):
		return swayed
	case (e.status == 126 || e.status == 127) && e.stdout == "" && said && switched == 0:
		return refused
	}
	return ""
}
