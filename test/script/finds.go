// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// finds runs doctor, with the words behind "--" before it, and compares what it finds, in its order. Of each finding it
// also plays what it promises: the commands to look with are run, and end; no text is long; nothing is left behind.
func finds(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: finds [severity:code...] [-- program args...]")
	}
	want, prefix := args, []string{"env"}
	i := slices.Index(args, "--")
	if i >= 0 {
		want, prefix = args[:i], args[i+1:]
	}
	before := traces(ts)
	words := slices.Concat(prefix, []string{"iptables-wrapper", "doctor"})
	err := ts.Exec(words[0], words[1:]...)
	after := traces(ts)
	if after != before {
		ts.Check(os.WriteFile(ts.MkAbs("before"), []byte(before), 0o600))
		ts.Check(os.WriteFile(ts.MkAbs("after"), []byte(after), 0o600))
		difference, _ := exec.Command("diff", ts.MkAbs("before"), ts.MkAbs("after")).Output() // its status is 1
		ts.Fatalf("doctor left traces:\n%s", difference)
	}
	var got []string
	output := ts.ReadFile("stdout")
	for i, line := range strings.Split(output, "\n") {
		switch found := finding.FindStringSubmatch(line); {
		case i > 0 && len(found) > 0:
			got = append(got, strings.ToLower(found[1])+":"+found[2])
		case strings.HasPrefix(line, "   look: "):
			look(ts, prefix, strings.TrimPrefix(line, "   look: "))
		case strings.HasPrefix(line, "   do:   "):
			if n := len(sentences.FindAllString(line+" ", -1)); n > 2 {
				ts.Fatalf("%d sentences of advice: %s", n, line)
			}
			if bad := changes.FindString(line); bad != "" {
				ts.Fatalf("it prints a command that changes something, %q: %s", bad, line)
			}
		case len(line) > 200 && !strings.HasPrefix(line, "   more: "):
			ts.Fatalf("%d characters: %s", len(line), line)
		}
	}
	if !slices.Equal(got, want) {
		ts.Fatalf("it finds %q, want %q:\n%s", got, want, output)
	}
	isProblem := strings.Contains(strings.Join(got, " "), "problem:")
	if isProblem != (err != nil) {
		ts.Fatalf("its status: %v", err)
	}
}

var (
	finding   = regexp.MustCompile(`^(PROBLEM|WARNING) +([a-z-]+): `)
	sentences = regexp.MustCompile(`[.!?] +`)
	// changes matches commands that mostly change something. Commands of other programs have no arguments in advice.
	changes = regexp.MustCompile(`\bip6?tables[a-z-]* (-[ADFIPRXZ]|--(append|delete|flush|policy))|\bnft (add|create|` +
		`delete|destroy|flush|insert|replace|reset)|update-alternatives |modprobe |\brm |-restore |--force`)
)

// look runs a command that doctor printed, as the user who has read it would.
func look(ts *testscript.TestScript, prefix []string, command string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, prefix[0], slices.Concat(prefix[1:], []string{"sh", "-c", command})...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = environment(ts)
	cmd.WaitDelay = time.Second
	output, _ := cmd.CombinedOutput() // many a command fails there, as iptables does
	text := string(output)
	isBad := text == "" || strings.HasPrefix(text, "sh: ") || strings.Contains(strings.ToLower(text), "usage")
	if ctx.Err() != nil || isBad {
		ts.Fatalf("look: %s\nshows nothing, or does not end: %v %s", command, ctx.Err(), text)
	}
}

// traces are what doctor must leave as it is: the rules of both backends, the tables that exist, and what is in the
// directories of the switch, the record and the lock.
func traces(ts *testscript.TestScript) string {
	ruleset, _ := exec.Command("nft", "-s", "list", "ruleset").CombinedOutput()
	all := string(ruleset)
	for _, names := range []string{"/proc/thread-self/net/ip_tables_names", "/proc/thread-self/net/ip6_tables_names"} {
		content, _ := os.ReadFile(names)
		all += string(content)
	}
	for _, directory := range []string{"/run", "/dev", "/usr/sbin", "/usr/local/sbin", "/etc/alternatives"} {
		ts.Check(filepath.WalkDir(directory, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			var st unix.Stat_t
			err = unix.Lstat(path, &st)
			content, _ := os.Readlink(path)
			if !strings.HasPrefix(path, "/dev/pts") {
				all += fmt.Sprintf("%s %s %o %d %d\n", path, content, st.Mode, st.Uid, st.Size)
			}
			return err
		}))
	}
	return all
}

// environment is what programs of a script get.
func environment(ts *testscript.TestScript) []string {
	all := append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	const passedOn = "IPTABLES_WRAPPER_BACKEND XTABLES_LOCKFILE XTABLES_LIBDIR"
	for name := range strings.FieldsSeq(passedOn) {
		if value := ts.Getenv(name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	return all
}
