// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package script plays situations: the files beside this one. It is a module of its own, so that who uses the wrapper's
// module does not get the modules that these tests need.
package script

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	if isAgent {
		os.Exit(agent(os.Args[1], os.Args[2:]))
	}
	if isRefuse {
		fmt.Fprintln(os.Stderr, refuse(os.Args[1], os.Args[2], os.Args[3:]))
		os.Exit(125)
	}
	host.Main(m)
}

// TestScript plays the situations in *.txtar: what a host is like, what is called, and what must result. The
// language is that of github.com/rogpeppe/go-internal/testscript, with these commands besides:
//
//	status N program [args...]   run it; it must end with status N
//	says N file program [args]   the same, and print what the file says; -update writes the file
//	finds [severity:code...] [-- program args...]
//	                             what doctor must find, by the program; each command that it prints shows something
//	wrapped                      make the six commands run the wrapper, as install does where nothing manages them
//	leads [name...] file         the names, all six if none is given, must point to /usr/sbin/file
//	recorded nft|legacy|nothing  this must be what is recorded for the container's network namespace, and nothing else
//	[all] ...                    only where host.All
//
// /usr/sbin/iptables-wrapper is there, and under no name yet. "tables-nft" and the like are Debian's own.
func TestScript(t *testing.T) {
	files, err := filepath.Glob("*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
			end := endAfter(5*time.Minute, t.Errorf)
			defer end.Stop()
			nodes, err := filepath.Abs("../rules/nodes")
			host.Check(t, err)
			programs, err := filepath.Abs("../rules/programs")
			host.Check(t, err)
			script, err := filepath.Abs(file)
			host.Check(t, err)
			self, err := os.Executable()
			host.Check(t, err)
			testscript.Run(t, testscript.Params{
				Files:               []string{file},
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
				// The work directory goes with the container. To remove it file by file would be to remove also
				// what a script has mounted there, to the last file of the machine.
				TestWork: true,
				Setup: func(e *testscript.Env) error {
					e.Setenv("GOMAXPROCS", os.Getenv("GOMAXPROCS")) // of host.Contain
					e.Setenv("NODES", nodes)
					e.Setenv("PROGRAMS", programs)
					e.Setenv("SCRIPT", script)
					e.Setenv("SELF", self)
					return nil
				},
				Condition: func(condition string) (bool, error) {
					if condition != "all" {
						return false, fmt.Errorf("no condition %q", condition)
					}
					return host.All(), nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"status":   status,
					"wrapped":  wrapped,
					"leads":    leads,
					"recorded": recorded,
					"says":     says,
					"finds":    finds,
				},
			})
		})
	}
}

// endAfter kills all that runs in this test's container, but for the test, if it still runs after a while. So a script
// that waits for what never comes fails where it waits.
func endAfter(limit time.Duration, errorf func(format string, args ...any)) *time.Timer {
	return time.AfterFunc(limit, func() {
		errorf("after %v, all processes of the script are killed", limit)
		if os.Getpid() != 1 { // and these would be the machine's
			return
		}
		err := unix.Kill(-1, unix.SIGKILL)
		if err != nil {
			errorf("kill them: %v", err)
		}
	})
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

func wrapped(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: wrapped")
	}
	ts.Check(host.LayOut(os.Getenv(host.WrapperVariable)))
}

func leads(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: leads [name...] file")
	}
	which, file := args[:len(args)-1], args[len(args)-1]
	if len(which) == 0 {
		which = host.Commands
	}
	for _, name := range which {
		if got, want := host.End(name), filepath.Join("/usr/sbin", file); got != want {
			ts.Fatalf("%s points to %s, want %s", name, got, want)
		}
	}
}

func recorded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: recorded nft|legacy|nothing")
	}
	found, err := filepath.Glob("/dev/iptables-*")
	ts.Check(err)
	var namespace unix.Stat_t
	ts.Check(unix.Stat("/proc/1/ns/net", &namespace))
	got := "nothing"
	for _, path := range found {
		content, err := os.Readlink(path)
		ts.Check(err)
		if path != fmt.Sprintf("/dev/iptables-backend-%d", namespace.Ino) {
			ts.Fatalf("there is %s -> %s", path, content)
		}
		got = content
	}
	if got != args[0] {
		ts.Fatalf("recorded is %s, want %s", got, args[0])
	}
}

var update = flag.Bool("update", false, "write what programs print into the scripts")

// namespaceNumber differs from run to run, and is as long everywhere.
var namespaceNumber = regexp.MustCompile(`net:\[\d{10}\]`)

// So do a date and a time.
var (
	date = regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`)
	hour = regexp.MustCompile(`\b\d\d:\d\d\b`)
)

// says runs a program and compares its status, and all that it prints on both streams together, with a file of the
// script. With -update, it writes the file instead.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: says N file program [args...]")
	}
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = environment(ts)
	got, err := cmd.CombinedOutput()
	status := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("status %d, want %s: %s", status, args[0], got)
	}
	got = namespaceNumber.ReplaceAll(got, []byte("net:[NNNNNNNNNN]"))
	got = hour.ReplaceAll(date.ReplaceAll(got, []byte("YYYY-MM-DD")), []byte("hh:mm"))
	if *update {
		ts.Check(writeSection(ts.Getenv("SCRIPT"), args[1], got))
		return
	}
	if want := ts.ReadFile(args[1]); want != string(got) {
		ts.Fatalf("%s: got\n%s\nwant\n%s", strings.Join(args[2:], " "), got, want)
	}
}

func writeSection(script, name string, content []byte) error {
	archive, err := txtar.ParseFile(script)
	if err != nil {
		return err
	}
	found := false
	for i, f := range archive.Files {
		if f.Name == name {
			archive.Files[i].Data, found = content, true
		}
	}
	if !found {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: content})
	}
	return os.WriteFile(script, txtar.Format(archive), 0o644)
}
