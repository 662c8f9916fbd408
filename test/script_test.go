// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// TestScript plays the situations in script/*.txtar: what a host is like, what is called, and what must result. The
// language is that of github.com/rogpeppe/go-internal/testscript, with these commands besides:
//
//	status N program [args...]   run it; it must end with status N
//	says N file program [args]   run it; it must end with status N and print what the file says; -update writes the file
//	leads [name...] file         the names, all six if none is given, must point to /usr/sbin/file
//
// /usr/sbin/iptables-wrapper is there, and under no name yet. "tables-nft" and the like are Debian's own.
func TestScript(t *testing.T) {
	files, err := filepath.Glob("script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			if !host.Contain(t) {
				return
			}
			putWrapper(t, wrapperFile)
			nodes, err := filepath.Abs("nodes")
			host.Check(t, err)
			script, err := filepath.Abs(file)
			host.Check(t, err)
			testscript.Run(t, testscript.Params{
				Files:               []string{file},
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
				// The work directory goes with the container's /tmp. To remove it file by file would be to remove also what a
				// script has mounted there, to the last file of the machine.
				TestWork: true,
				Setup: func(e *testscript.Env) error {
					e.Setenv("NODES", nodes)
					e.Setenv("SCRIPT", script)
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "leads": leads, "says": says},
			})
		})
	}
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

func leads(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: leads [name...] file")
	}
	which, file := args[:len(args)-1], args[len(args)-1]
	if len(which) == 0 {
		which = names
	}
	for _, name := range which {
		if got, want := end(name), filepath.Join("/usr/sbin", file); got != want {
			ts.Fatalf("%s points to %s, want %s", name, got, want)
		}
	}
}
