// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
)

// In the wrapper's build main is not called without it.
var _ = func() bool { process.FinishStart(); return true }()

// childVariable makes the test binary print what this package says, instead of testing.
const childVariable = "PROCESS_TEST_CHILD"

func TestMain(m *testing.M) {
	if process.Variable(childVariable) == "" {
		os.Exit(m.Run())
	}
	process.LockThread()
	if process.Variable("RESTORE") != "" {
		process.RestoreMask()
	}
	fmt.Printf("%q\n", process.Environment())
	fmt.Printf("%q %q %q\n", process.Variable("A"), process.Variable("EMPTY"), process.Variable("B"))
	other := make(chan int)
	go func() { other <- unix.Gettid() }()
	elsewhere := <-other != os.Getpid()
	fmt.Println(process.Ignored(unix.SIGTERM), process.Ignored(unix.SIGHUP), process.Ignored(unix.SIGUSR1), elsewhere)
	stderr, err := os.Readlink("/proc/self/fd/2")
	fmt.Println(stderr, err)
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "SigBlk") || strings.HasPrefix(line, "SigCgt") {
			fmt.Println(strings.Fields(line)[1])
		}
	}
	os.Exit(0)
}

// What each of the two builds knows about its process.
func TestProcess(t *testing.T) {
	// What is caught here has its default in the processes that it starts, also under nohup.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGTERM)
	for _, build := range []struct {
		doc     string
		flags   []string
		variant bool // with the tag
	}{
		{"plain", nil, false},
		{"the wrapper's", []string{"-tags=iptables_wrapper_signals", "-ldflags=-checklinkname=0"}, true},
	} {
		program := t.TempDir() + "/child"
		args := slices.Concat([]string{"test", "-c", "-o", program}, build.flags, []string{"."})
		if output, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, output)
		}
		run := func(env []string, with ...string) []string {
			t.Helper()
			args := append(with, program)
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append([]string{childVariable + "=1", "GOMAXPROCS=1"}, env...)
			output, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %q: %v", build.doc, args, err)
			}
			return strings.Split(strings.TrimSpace(string(output)), "\n")
		}
		want := func(got, plain, wrapper string) {
			t.Helper()
			if build.variant {
				plain = wrapper
			}
			if got != plain {
				t.Errorf("%s: got %s, want %s", build.doc, got, plain)
			}
		}

		got := run([]string{"AB=3", "A=1", "EMPTY=", "=odd"})
		const environment = `["PROCESS_TEST_CHILD=1" "GOMAXPROCS=1" "AB=3" "A=1" "EMPTY=" "=odd"]`
		want(got[0], environment, environment)
		want(got[1], `"1" "" ""`, `"1" "" ""`)
		want(got[2], "false false false true", "false false false true")
		want(got[4], "0000000000000000", "0000000000000000")

		if caught, err := strconv.ParseUint(got[5], 16, 64); err != nil || caught&0x4001 != 0x4001 {
			t.Errorf("%s: handlers for %s, %v, want SIGHUP and SIGTERM among them", build.doc, got[5], err)
		}
		got = run(nil, "sh", "-c", `exec "$0" 2>&-`)
		want(got[3], "/dev/null <nil>", "/dev/null <nil>")

		got = run(nil, "env", "--ignore-signal=TERM,HUP")
		want(got[2], "false false false true", "true true false true")

		const blocked = "--block-signal=USR1,CHLD,PROF,RTMAX"
		got = run([]string{"RESTORE="}, "env", blocked)
		want(got[4], "8000000000000200", "8000000000000200") // the runtime unblocks two
		got = run([]string{"RESTORE=1"}, "env", blocked)
		want(got[4], "8000000000000200", "8000000004010200")
	}
}
