// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// errnos are those that the man page of a call allows, and besides, for each call: ENOMEM, EINTR, EIO, EPERM, ENOSYS. Not
// among them is EPROTONOSUPPORT for a socket, which is an answer: script/no-nf-tables.txtar.
var errnos = map[string]string{
	"close":          "EBADF EDQUOT ENOSPC",
	"execve":         "E2BIG EACCES EAGAIN EFAULT EINVAL EISDIR ELIBBAD ELOOP EMFILE ENAMETOOLONG ENFILE ENOENT ENOEXEC ENOTDIR ETXTBSY",
	"faccessat":      "EACCES EBADF EFAULT EINVAL ELOOP ENAMETOOLONG ENOENT ENOTDIR EROFS ETXTBSY",
	"fcntl":          "EACCES EAGAIN EBADF EINVAL",
	"flock":          "EAGAIN EBADF EINVAL ENOLCK",
	"getcwd":         "EACCES EFAULT EINVAL ENAMETOOLONG ENOENT ERANGE",
	"getsockopt":     "EAGAIN EBADF EFAULT EINVAL ENOENT ENOPROTOOPT ENOTSOCK",
	"linkat":         "EACCES EBADF EDQUOT EEXIST EFAULT EINVAL ELOOP EMLINK ENAMETOOLONG ENOENT ENOSPC ENOTDIR EROFS EXDEV",
	"newfstatat":     "EACCES EBADF EFAULT EINVAL ELOOP ENAMETOOLONG ENOENT ENOTDIR EOVERFLOW",
	"openat":         "EACCES EBADF EBUSY EFAULT EINVAL EISDIR ELOOP EMFILE ENAMETOOLONG ENFILE ENODEV ENOENT ENOTDIR ENXIO EOVERFLOW",
	"prlimit64":      "EFAULT EINVAL ESRCH",
	"read":           "EAGAIN EBADF EFAULT EINVAL EISDIR",
	"readlinkat":     "EACCES EBADF EFAULT EINVAL ELOOP ENAMETOOLONG ENOENT ENOTDIR",
	"recvfrom":       "EAGAIN EBADF ECONNREFUSED EFAULT EINVAL ENOBUFS ENOTCONN ENOTSOCK",
	"renameat":       "EACCES EBADF EBUSY EDQUOT EFAULT EINVAL EISDIR ELOOP EMLINK ENAMETOOLONG ENOENT ENOSPC ENOTDIR ENOTEMPTY EROFS EXDEV",
	"rt_sigaction":   "EFAULT EINVAL",
	"rt_sigprocmask": "EFAULT EINVAL",
	"sendto":         "EACCES EAGAIN EBADF ECONNREFUSED ECONNRESET EDESTADDRREQ EFAULT EINVAL EISCONN EMSGSIZE ENOBUFS ENOTCONN ENOTSOCK EOPNOTSUPP EPIPE",
	"setsockopt":     "EBADF EDOM EFAULT EINVAL ENOPROTOOPT ENOTSOCK",
	"socket":         "EACCES EAFNOSUPPORT EINVAL EMFILE ENFILE ENOBUFS",
	"symlinkat":      "EACCES EBADF EDQUOT EEXIST EFAULT ELOOP EMLINK ENAMETOOLONG ENOENT ENOSPC ENOTDIR EROFS",
	"unlinkat":       "EACCES EBADF EBUSY EFAULT EINVAL EISDIR ELOOP ENAMETOOLONG ENOENT ENOTDIR EROFS",
}

const everyErrno = "ENOMEM EINTR EIO EPERM ENOSYS"

// asks says whether a call is part of the question to one backend. If it fails, the guess may be the other; it is never
// kept.
func asks(mode string, call aCall) bool {
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

// faultStates are the hosts and the layouts of the names on which calls fail, each with the mode that must come of it.
var faultStates = []faultState{
	{doc: "hint in nft", mode: "nft", host: "iptables-nft -t mangle -N KUBE-IPTABLES-HINT"},
	{doc: "hint in nft for IPv6 by alternatives", mode: "nft", host: "ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT", lay: layAlternatives},
	{doc: "hint in legacy", mode: "legacy", host: "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT"},
	{doc: "hint in legacy under the file itself", mode: "legacy", host: "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT", lay: layFile},
	{doc: "canary in legacy for IPv6", mode: "legacy", host: "ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY", lay: layHardLinks},
	{doc: "rules in nft", mode: "nft", host: "iptables-nft -A INPUT -j ACCEPT"},
	{doc: "rules in legacy", mode: "legacy", host: "iptables-legacy -A INPUT -j ACCEPT"},
	{doc: "rules in both", mode: "legacy", host: "iptables-nft -A INPUT -j ACCEPT; for i in 1 2 3; do iptables-legacy -A INPUT -j ACCEPT; done"},
	{doc: "hint in nft and rules in legacy", mode: "nft", host: "iptables-nft -t mangle -N KUBE-IPTABLES-HINT; iptables-legacy -A INPUT -j ACCEPT"},
	{doc: "nothing on the host", mode: "nft", host: ":"},
}

type faultState struct {
	doc, mode, host string
	lay             string // of the names: see layLinks
}

// aCall is a system call of the first thread between its start and the program's.
type aCall struct {
	Name string
	On   string // what it is about, with NAME for one of the six names
	When int    // which call of that name it is, from 1 on
}

// outcome is what came of a call that failed.
type outcome string

const (
	kept    outcome = "the program ran, all names moved"
	ran     outcome = "the program ran"
	swayed  outcome = "the other backend's ran, nothing kept"
	refused outcome = "one line, 126 or 127"
	goDied  outcome = "Go's runtime gave up"
)

// injected is one call that was made to fail, and what came of it.
type injected struct {
	Call       aCall
	BeforeMain bool
	Errno      string
	Outcome    outcome
}

// Each system call on the way to the program fails, one by one, with each errno. Whatever fails, the right program runs or
// one line says why not; no name leads nowhere or to the other backend; and the next call is as good as the first.
func TestFaults(t *testing.T) {
	results, outside := resultsDir(t)
	if outside {
		defer func() { compareFaults(t, results) }()
	}
	t.Run("on", func(t *testing.T) {
		for i, state := range faultStates {
			t.Run(state.doc, func(t *testing.T) {
				t.Parallel()
				if !host.Contain(t) {
					return
				}
				host.Run(t, "sh", "-ec", state.host)
				if state.lay == "" {
					state.lay = layLinks
				}
				all := injectAll(t, state, i == 0)
				content, err := json.Marshal(all)
				if err != nil {
					t.Fatal(err)
				}
				putResult(t, results, state.doc, content)
			})
		}
	})
}

func injectAll(t *testing.T, state faultState, runtimeToo bool) (all []injected) {
	lay(t, state.lay)
	beforeMain, calls := wayToProgram(t)
	if runtimeToo {
		for _, call := range beforeMain {
			for errno := range strings.FieldsSeq(everyErrno + " EAGAIN EINVAL") {
				all = append(all, inject(t, state, call, errno, true))
			}
		}
	}
	for _, call := range calls {
		allowed, known := errnos[call.Name]
		if !known {
			t.Fatalf("the wrapper calls %s, of which no errno is listed", call.Name)
		}
		if call.Name == "rt_sigaction" && !runtimeToo {
			continue // it is the same on each host
		}
		for errno := range strings.FieldsSeq(everyErrno + " " + allowed) {
			if errno == "ENOENT" && strings.HasSuffix(call.On, "/if_inet6") {
				continue // an answer too: this kernel has no IPv6
			}
			all = append(all, inject(t, state, call, errno, false))
		}
	}
	return all
}

// wayToProgram traces a first call and returns what its first thread does, by Go's runtime before main, and after.
func wayToProgram(t *testing.T) (beforeMain, calls []aCall) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	host.Run(t, "strace", "-qq", "-s", "200", "-o", file, "/usr/sbin/iptables", "--version")
	trace, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{"execve": -1} // strace does not count its own
	inMain := false
	for line := range strings.Lines(string(trace)) {
		name, args, isCall := strings.Cut(line, "(")
		if !isCall || strings.HasPrefix(line, "-") {
			continue
		}
		count[name]++
		call := aCall{name, about(name, args), count[name]}
		inMain = inMain || call.On == "/proc/self/exe" // the first thing that main looks at
		switch {
		case name == "execve" && count[name] == 0:
		case !inMain:
			beforeMain = append(beforeMain, call)
		case slices.Contains([]string{"futex", "mmap", "madvise", "munmap", "clone", "nanosleep", "sched_yield", "rt_sigreturn", "tgkill", "getpid"}, name):
			// the runtime's, whenever it needs them
		default:
			calls = append(calls, call)
		}
		if name == "execve" && count[name] == 1 {
			return beforeMain, calls
		}
	}
	t.Fatalf("it did not become a program:\n%s", trace)
	return nil, nil
}

var (
	quoted  = regexp.MustCompile(`"([^"]*)"`)
	oneName = regexp.MustCompile(`\bip6?tables(-save|-restore)?(\.|$)`)
	multi   = regexp.MustCompile(`xtables-(nft|legacy)-multi`)
)

// about says what a call is about, from its arguments as strace writes them.
func about(name, args string) string {
	fields := strings.Split(args, ", ")
	switch name {
	case "socket":
		return strings.TrimSuffix(strings.TrimSpace(fields[0]), ")")
	case "getsockopt":
		return strings.Join(fields[1:3], " ")
	case "sendto", "recvfrom", "setsockopt", "flock", "close", "rt_sigaction", "rt_sigprocmask", "read":
		return ""
	}
	paths := quoted.FindAllStringSubmatch(args, -1)
	if len(paths) == 0 {
		return ""
	}
	on := paths[len(paths)-1][1]
	if name == "execve" || name == "readlinkat" {
		on = paths[0][1]
	}
	return multi.ReplaceAllString(oneName.ReplaceAllString(on, "NAME$2"), "xtables-MODE-multi")
}

// inject makes one call fail on a first call and returns what came of it.
func inject(t *testing.T, state faultState, call aCall, errno string, beforeMain bool) injected {
	t.Helper()
	if changed(t) {
		lay(t, state.lay)
	}
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-qq", "-o", file, "-e", "trace="+call.Name,
		"-e", "inject="+call.Name+":error="+errno+":when="+strconv.Itoa(call.When), "/usr/sbin/iptables", "--version")
	cmd.Env = []string{"PATH=/nowhere"}
	cmd.Path = "/usr/bin/strace"
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	trace, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := injected{Call: call, BeforeMain: beforeMain, Errno: errno}
	if !bytes.Contains(trace, []byte("(INJECTED)")) {
		if !beforeMain && call.Name != "rt_sigprocmask" {
			t.Fatalf("%+v was not made to fail: %s", call, trace)
		}
		return i // the runtime makes such calls too, not always as often
	}
	status := cmd.ProcessState.ExitCode()
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	other := map[string]string{"nft": "legacy", "legacy": "nft"}[state.mode]
	switch {
	case status == 0 && stderr.Len() == 0 && strings.Contains(stdout.String(), version[state.mode]):
		i.Outcome = ran
	case status == 0 && stderr.Len() == 0 && strings.Contains(stdout.String(), version[other]) && asks(state.mode, call):
		i.Outcome = swayed
	case (status == 126 || status == 127) && stdout.Len() == 0 && len(lines) <= 2 && strings.HasPrefix(lines[0], "iptables-wrapper: ") &&
		(len(lines) == 1 || strings.HasPrefix(lines[1], "iptables-wrapper: hint: ")):
		i.Outcome = refused
	case (beforeMain || call.Name == "rt_sigprocmask") && (status == 2 || status == -1) && stdout.Len() == 0:
		i.Outcome = goDied // by a traceback, or by a signal where it cannot even write one
	default:
		t.Errorf("%s: %+v fails with %s: status %d, stdout %q, stderr %q", state.doc, call, errno, status, stdout.String(), stderr.String())
	}

	moved := 0
	for _, name := range names {
		switch got := end(name); {
		case got == "/usr/sbin/xtables-"+state.mode+"-multi":
			moved++
		case !isOurs(got):
			t.Errorf("%s: %+v fails with %s: %s leads to %s", state.doc, call, errno, name, got)
		}
	}
	switch {
	case moved == len(names) && i.Outcome == ran:
		i.Outcome = kept
	case moved > 0 && i.Outcome != ran && i.Outcome != goDied:
		t.Errorf("%s: %+v fails with %s: %s, and %d names moved", state.doc, call, errno, i.Outcome, moved)
	}
	if left := litter(t); len(left) > 0 && call.Name != "unlinkat" {
		t.Errorf("%s: %+v fails with %s: left behind: %v", state.doc, call, errno, left)
	}
	if i.Outcome != kept {
		// The next call of each name is as good as the first.
		for _, name := range names {
			if got := host.Run(t, "/usr/sbin/"+name, "--version"); !strings.Contains(got, version[state.mode]) {
				t.Errorf("%s: %+v failed with %s: the next call of %s says %q", state.doc, call, errno, name, got)
			}
		}
		if state.doc != "nothing on the host" {
			wantNames(t, "/usr/sbin/xtables-"+state.mode+"-multi")
		}
	}
	return i
}

var version = map[string]string{"nft": "(nf_tables)", "legacy": "(legacy)"}

// isOurs says whether a path at which a name ended is the wrapper's file.
func isOurs(path string) bool {
	ours, err := os.Stat(os.Getenv(wrapperVariable))
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == ours.Size()
}

// changed says whether the names are not as they were laid out.
func changed(t *testing.T) bool {
	t.Helper()
	return len(litter(t)) > 0 || slices.ContainsFunc(names, func(name string) bool { return !isOurs(end(name)) })
}

// litter are the temporary links that are left.
func litter(t *testing.T) (left []string) {
	t.Helper()
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives"} {
		some, err := filepath.Glob(filepath.Join(dir, ".*"))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, some...)
	}
	return left
}

// compareFaults compares what came of each call with what docs/evidence/faults.md says.
func compareFaults(t *testing.T, results string) {
	total := 0
	calls := map[string]map[outcome]int{}
	contents := readResults(t, results)
	if len(contents) < len(faultStates) {
		t.Log("not all hosts were asked for, so nothing is compared")
		return
	}
	for _, content := range contents {
		var all []injected
		if err := json.Unmarshal(content, &all); err != nil {
			t.Fatal(err)
		}
		for _, i := range all {
			if i.Outcome == "" {
				continue
			}
			total++
			key := "`" + strings.TrimSpace(i.Call.Name+"` "+i.Call.On)
			if i.BeforeMain || i.Outcome == goDied {
				key = "any call that Go's runtime makes by itself"
			}
			if calls[key] == nil {
				calls[key] = map[outcome]int{}
			}
			calls[key][i.Outcome]++
		}
	}
	outcomes := []outcome{kept, ran, swayed, refused, goDied}
	var text strings.Builder
	text.WriteString("Each system call of the first thread between start and execve, on each of these hosts, one by one,\nwith each errno below:\n\n")
	for _, state := range faultStates {
		fmt.Fprintf(&text, "- %s\n", state.doc)
	}
	text.WriteString("\n| what fails |")
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
