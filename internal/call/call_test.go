// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	err := host.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// fails runs a call that cannot become a program, and compares what it prints, without what begins each line.
func fails(t *testing.T, doc string, argv []string, status int, lines ...string) {
	t.Helper()
	var stderr bytes.Buffer
	got := run(argv, &stderr)
	want := ""
	for _, line := range lines {
		want += "iptables-wrapper: " + line + "\n"
	}
	if got != status || stderr.String() != want {
		t.Errorf("%s: got status %d\n%swant status %d\n%s", doc, got, stderr.String(), status, want)
	}
}

func TestOverride(t *testing.T) {
	for _, test := range []struct {
		value string
		want  evidence.Mode
		wrong bool
	}{
		{value: ""},
		{value: "auto"},
		{value: "nft", want: evidence.NFT},
		{value: "legacy", want: evidence.Legacy},
		{value: "NFT", wrong: true},
		{value: "nf_tables", wrong: true},
		{value: " nft", wrong: true},
		{value: "nft,legacy", wrong: true},
	} {
		t.Setenv(ModeVariable, test.value)
		got, err := Override()
		if got != test.want || (err != nil) != test.wrong {
			t.Errorf("%q: got %q, %v", test.value, got, err)
		}
	}
	host.Check(t, os.Unsetenv(ModeVariable))
	got, err := Override()
	if got != "" || err != nil {
		t.Errorf("not set: got %q, %v", got, err)
	}
}

// A wrong variable is a usage error, even for a call that needs no backend.
func TestWrongVariable(t *testing.T) {
	t.Setenv(ModeVariable, "nf_tables\n")
	fails(t, "a wrong variable", []string{"/usr/sbin/iptables", "--version"}, 2,
		`environment variable IPTABLES_WRAPPER_MODE: "nf_tables\n" is not one of auto, nft, legacy`,
		"try: set it to one of these, or unset it")
}

// A thread whose effective user is another one than its user is what a set-user-ID program is. It is refused before
// anything else is looked at.
func TestSetUserID(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "change the effective user; run it as root")
	}
	t.Setenv(ModeVariable, "wrong, too")
	host.OnThread(func() {
		const same = ^uintptr(0)
		// The kernel knows users by thread. The functions of package syscall change those of all threads.
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, 1000, same)
		if errno != 0 {
			t.Error(errno)
			return
		}
		fails(t, "set-user-ID", []string{"/usr/sbin/ip6tables-save"}, 126,
			"ip6tables-save must not run set-user-ID or set-group-ID",
			"try: chmod ug-s, and run it as root")
	})
}

// Each reason why a program does not run, with its status, which is never 1, and what to do.
func TestCannotRun(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const nft, legacy = "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"
	self, err := os.Executable()
	host.Check(t, err)
	// A wrapper that runs itself does not end. This is in seconds of the processor.
	host.Check(t, unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: 20, Max: 20}))
	// The multi-call programs stay.
	host.Run(t, "find", "/usr/sbin", "-type", "l", "-name", "ip*tables-*", "-delete")
	nowhere := evidence.Backend{}
	because := " (" + evidence.Query{Override: evidence.NFT}.Decide(nowhere, nowhere).String() + ")"
	for _, test := range []struct {
		doc    string
		make   func() error
		argv   []string
		status int
		lines  []string
	}{
		{
			doc: "not executable", make: func() error { return os.Chmod(nft, 0o644) },
			argv: []string{"/usr/sbin/iptables", "-S"}, status: 126,
			lines: []string{
				"cannot run iptables for nft: execute " + nft + ": permission denied" + because,
				"try: let this user execute that file; if the backend is wrong, set IPTABLES_WRAPPER_MODE",
			},
		},
		{
			doc: "no program", make: func() error {
				return errors.Join(os.Remove(nft), os.WriteFile(nft, []byte("no program\n"), 0o755))
			},
			argv: []string{"iptables", "-S"}, status: 126,
			lines: []string{
				"cannot run iptables for nft: execve " + nft + ": exec format error" + because,
				"try: let this user execute that file; if the backend is wrong, set IPTABLES_WRAPPER_MODE",
			},
		},
		{
			doc: "the wrapper itself", make: func() error { return errors.Join(os.Remove(nft), os.Symlink(self, nft)) },
			argv: []string{"iptables-save"}, status: 126,
			lines: []string{
				`cannot run iptables-save for nft: "` + nft + `": it is the wrapper itself` + because,
				"try: restore iptables' own program there",
			},
		},
		{
			doc: "missing", make: func() error { return os.Remove(nft) },
			argv: []string{"./ip6tables-restore"}, status: 127,
			lines: []string{
				"cannot run ip6tables-restore for nft: no such program: ip6tables-nft-restore or xtables-nft-multi" + because,
				"try: install the nft version of iptables in this image; if the backend is wrong, set IPTABLES_WRAPPER_MODE",
			},
		},
	} {
		host.Check(t, test.make())
		t.Setenv(ModeVariable, "nft")
		fails(t, test.doc, test.argv, test.status, test.lines...)
	}
	t.Setenv(ModeVariable, "legacy")
	because = strings.Replace(because, "nft", "legacy", 1)
	fails(t, "an argument that is too long", []string{"iptables", strings.Repeat("x", 1<<20)}, 126,
		"cannot run iptables for legacy: execve "+legacy+": argument list too long"+because,
		"try: pass fewer arguments or a smaller environment: the path of the program counts, too, and is longer than that "+
			"of the command")
}

// The other backend is no substitute for a program that is missing, and nothing is stored.
func TestNoSubstitute(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Run(t, "iptables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	host.Run(t, "sh", "-c", "rm /usr/sbin/*-legacy*")
	t.Setenv(ModeVariable, "")
	var stderr bytes.Buffer
	status := run([]string{"/usr/sbin/iptables", "-A", "INPUT", "-j", "ACCEPT"}, &stderr)
	if status != 127 || !strings.Contains(stderr.String(), "cannot run iptables for legacy: no such program") {
		t.Errorf("got status %d\n%s", status, stderr.String())
	}
	_, err := os.Lstat("/dev/iptables-memory")
	if !os.IsNotExist(err) {
		t.Errorf("it is remembered: %v", err)
	}
}

// The program beside the path of the command is run rather than that beside the running file, and this one rather than
// none. The test binary is the wrapper: init sees the command's name.
func TestBeside(t *testing.T) {
	self, err := os.Executable()
	host.Check(t, err)
	top := t.TempDir()
	host.Check(t, os.Mkdir(top+"/file", 0o755))
	host.Check(t, os.Mkdir(top+"/link", 0o755))
	host.Check(t, os.WriteFile(top+"/file/wrapper", host.Read(t, self), 0o755))
	host.Check(t, os.Symlink("../file/wrapper", top+"/link/iptables"))
	for _, beside := range []string{"file", "link"} {
		program := []byte("#!/bin/sh\necho beside the " + beside + ", \"$@\"\n")
		host.Check(t, os.WriteFile(top+"/"+beside+"/iptables-nft", program, 0o755))
		cmd := exec.Command(top+"/link/iptables", "-S", "INPUT")
		cmd.Env = append(os.Environ(), ModeVariable+"=nft")
		if got, want := host.Output(t, cmd), "beside the "+beside+", -S INPUT\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
