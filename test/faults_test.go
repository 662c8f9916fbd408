// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	"setsockopt": "EBADF EDOM EINVAL ENOPROTOOPT ENOTSOCK",
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
	case "sendto", "recvfrom", "setsockopt":
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

// Each system call on the way to the program, and of select and reset, fails, one by one, with each errno that it can
// have. Whatever fails, the right program runs or one line says why not; no name is broken; there are never two backends;
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
		allowed, known := errnos[call.Name]
		if !known {
			t.Fatalf("the wrapper calls %s, of which no errno is listed", call.Name)
		}
		try := strings.Fields(everyErrno + " " + allowed)
		if likely := usual[call.Name]; !host.All() {
			try = []string{likely}
			if likely == "" {
				try = []string{"EIO"}
			}
		}
		for _, errno := range try {
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

// judge returns the result of a call, "" if that may not be.
func (s *scene) judge(t *testing.T, failed step, e ended) outcome {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(e.stderr), "\n")
	said := strings.HasPrefix(lines[0], "iptables-wrapper: ") && (len(lines) == 1 || len(lines) == 2 && strings.HasPrefix(lines[1], "iptables-wrapper: hint: "))
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
	case e.status == 0 && e.stderr == "" && right && (memory == "" || memory == s.mode || s.guess):
		return ran
	case e.status == 0 && e.stderr == "" && e.program != "" && switched == 0 && (asks(s.mode, failed) || s.guess) &&
		(memory == "" || strings.Contains(e.program, "-"+memory) || s.then != ""):
		return swayed
	case (e.status == 126 || e.status == 127) && e.stdout == "" && said && switched == 0:
		return refused
	}
	return ""
}

// reportFaults writes the results into docs/evidence/faults.md, if that is asked for.
func reportFaults(t *testing.T, results string) {
	total := 0
	calls := map[string]map[outcome]int{}
	for _, content := range readResults(t, results) {
		var all []fault
		if err := json.Unmarshal(content, &all); err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			total++
			key := "`" + strings.TrimSpace(f.Step.Name+"` "+f.Step.On)
			if calls[key] == nil {
				calls[key] = map[outcome]int{}
			}
			calls[key][f.Outcome]++
		}
	}
	outcomes := []outcome{kept, ran, swayed, refused}
	var text strings.Builder
	text.WriteString("Each system call of a first call, `select` and `reset` fails, one by one, with each errno below, in these situations:\n\n")
	for _, s := range scenes {
		fmt.Fprintf(&text, "- %s\n", s.doc)
	}
	text.WriteString("\n| call |")
	for _, o := range outcomes {
		fmt.Fprintf(&text, " %s |", o)
	}
	text.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(outcomes)) + "\n")
	for _, key := range slices.Sorted(maps.Keys(calls)) {
		fmt.Fprintf(&text, "| %s |", key)
		for _, o := range outcomes {
			count := ""
			if n := calls[key][o]; n > 0 {
				count = strconv.Itoa(n)
			}
			fmt.Fprintf(&text, " %s |", count)
		}
		text.WriteString("\n")
	}
	text.WriteString("\n| call | errnos |\n| --- | --- |\n")
	fmt.Fprintf(&text, "| each | %s |\n", everyErrno)
	for _, name := range slices.Sorted(maps.Keys(errnos)) {
		fmt.Fprintf(&text, "| %s | %s |\n", name, errnos[name])
	}
	section(t, "faults", total, "faults injected", text.String())
}
