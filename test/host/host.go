// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package host gives a test a host of its own: a network namespace, and where the test is about a whole program, mounts
// and a first process too. Nothing outside is changed, and nothing is left behind.
package host

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Netns moves the test into a new network namespace, and with it every process that it starts. The thread is never
// unlocked, so it ends with the test.
func Netns(tb testing.TB) {
	tb.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		Cannot(tb, "make a network namespace: %v; run it as root", err)
	}
}

// Cannot ends a test that cannot run here: skipped on a user's machine, failed where CI is set.
func Cannot(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf("cannot "+format, args...)
	}
	tb.Skipf("cannot "+format, args...)
}

// NeedsRoot ends a test that does what only root may: to says what, such as "give a file away".
func NeedsRoot(tb testing.TB, to string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Cannot(tb, "%s: run it as root", to)
	}
}

// InFull ends a test that only "make test-all" runs, such as one that compiles Go's library for minutes.
func InFull(tb testing.TB) {
	tb.Helper()
	if !All() {
		tb.Skip("make test-all runs this")
	}
}

// All says whether the tests run in full, as "make test-all" runs them: every system call that can fail, every layout,
// thousands of random inputs. "make test" checks each behavior once or a few times.
func All() bool { return os.Getenv("TEST_ALL") != "" }

// Nightly says whether what takes too long for "make test-all" is wanted, too.
func Nightly() bool { return os.Getenv("TEST_ALL") == "nightly" }

// Number is how often something is done, depending on All.
func Number(few, all int) int {
	if All() {
		return all
	}
	return few
}

// Run starts a program, waits for its end and returns its standard output. Anything but status 0 ends the test.
func Run(tb testing.TB, name string, args ...string) string {
	tb.Helper()
	return Feed(tb, "", name, args...)
}

// Feed is Run with something to read on standard input.
func Feed(tb testing.TB, stdin, name string, args ...string) string {
	tb.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	return Output(tb, cmd)
}

// Output runs a command, which must end with status 0, and returns its standard output.
func Output(tb testing.TB, cmd *exec.Cmd) string {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		Cannot(tb, "run %s: it is not installed; make test installs it", cmd.Path)
	}
	if err != nil {
		said := stdout.String() + stderr.String()
		tb.Fatalf("%s: %v\n%s", cmd, err, said[max(0, len(said)-10000):])
	}
	return stdout.String()
}

// Check ends the test if there is an error.
func Check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Read returns what a file has.
func Read(tb testing.TB, path string) []byte {
	tb.Helper()
	content, err := os.ReadFile(path)
	Check(tb, err)
	return content
}

// Printed returns what an example writes to standard output.
func Printed(tb testing.TB, example func()) string {
	tb.Helper()
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	file, err := os.Create(tb.TempDir() + "/stdout")
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	os.Stdout = file
	example()
	content, err := os.ReadFile(file.Name())
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// Seeds are 1 to few, or to many with TEST_ALL; the one that TEST_SEED names; or as many as a variable says that nobody
// has seen.
func Seeds(tb testing.TB, variable string, few, many int) (all []uint64) {
	tb.Helper()
	first, number := uint64(1), uint64(Number(few, many))
	for name, n := range map[string]*uint64{"TEST_SEED": &first, variable: &number} {
		if text := os.Getenv(name); text != "" {
			_, err := fmt.Sscan(text, n)
			Check(tb, err)
		}
	}
	switch {
	case os.Getenv(variable) != "":
		first = rand.Uint64() >> 16
	case os.Getenv("TEST_SEED") != "":
		number = 1
	}
	for seed := first; seed < first+number; seed++ {
		all = append(all, seed)
	}
	return all
}

// Rand returns a source of random numbers and logs how to get the same ones again. They are always the same, except in
// "make nightly": a change does not fail for what it did not touch.
func Rand(tb testing.TB) *rand.Rand {
	tb.Helper()
	seed := uint64(1)
	if Nightly() {
		seed = uint64(time.Now().UnixNano())
	}
	if s := os.Getenv("TEST_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		if err != nil {
			tb.Fatalf("TEST_SEED: %v", err)
		}
	}
	tb.Logf("TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
