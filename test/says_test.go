// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what programs print into scripts and pages")

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
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	for _, name := range []string{"IPTABLES_WRAPPER_MODE", "IPTABLES_WRAPPER_DEBUG"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
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
