// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// childVariable makes the test binary print what this package says, instead of testing.
const childVariable = "PROCESS_TEST_CHILD"

func TestMain(m *testing.M) {
	if Variable(childVariable) == "" {
		os.Exit(m.Run())
	}
	LockThread()
	FinishStart()
	if Variable("RESTORE") != "" {
		RestoreMask()
	}
	fmt.Printf("%q\n%q %q %q\n", Environment(), Variable("A"), Variable("EMPTY"), Variable("B"))
	fmt.Println(Ignored(unix.SIGTERM), Ignored(unix.SIGHUP), Ignored(unix.SIGUSR1), unix.Gettid() == os.Getpid())
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "SigBlk") {
			fmt.Println(strings.Fields(line)[1])
		}
	}
	os.Exit(0)
}

// What each of the two builds knows about its process.
func TestProcess(t *testing.T) {
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
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = append([]string{childVariable + "=1"}, env...)
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

		got := run([]string{"A=1", "AB=3", "EMPTY=", "=odd"})
		want(got[0], `["PROCESS_TEST_CHILD=1" "A=1" "AB=3" "EMPTY=" "=odd"]`, `["PROCESS_TEST_CHILD=1" "A=1" "AB=3" "EMPTY=" "=odd"]`)
		want(got[1], `"1" "" ""`, `"1" "" ""`)
		want(got[2], "false false false true", "false false false true")
		want(got[3], "0000000000000000", "0000000000000000")

		got = run(nil, "env", "--ignore-signal=TERM,HUP")
		want(got[2], "false false false true", "true true false true")

		const blocked = "--block-signal=USR1,CHLD,PROF,RTMAX"
		got = run([]string{"RESTORE="}, "env", blocked)
		want(got[3], "8000000000000200", "8000000000000200") // the runtime unblocks two
		got = run([]string{"RESTORE=1"}, "env", blocked)
		want(got[3], "8000000000000200", "8000000004010200")
	}
}
