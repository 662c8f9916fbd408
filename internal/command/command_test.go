// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// TestMain makes the test binary the product where it is called as one.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == program {
		os.Exit(Run(os.Args, os.Stdout, os.Stderr))
	}
	host.MainOfPackage(m)
}

// run runs a command line as main does.
func runs(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Run(args, &out, &errs)
	return status, out.String(), errs.String()
}

// Wrong usage ends with 2, says what is wrong and where help is, in one line, and leaves stdout alone.
func TestUsage(t *testing.T) {
	for _, test := range []struct{ line, says, command string }{
		{line: "detct", says: `unknown command "detct". Did you mean "detect"?`},
		{line: "help detct", says: `unknown command "detct". Did you mean "detect"?`},
		{line: "--help detct", says: `unknown command "detct". Did you mean "detect"?`},
		{line: "--bogus", says: "flag provided but not defined: -bogus"},
		{line: "-x", says: "flag provided but not defined: -x"},
		{line: "---x", says: "bad flag syntax: ---x"},
		{line: "help --bogus", command: "help", says: "flag provided but not defined: -bogus"},
		{line: "help detect extra", command: "help", says: `unexpected argument "extra"`},
		{line: "version extra", command: "version", says: `unexpected argument "extra"`},
		{line: "version --bogus", command: "version", says: "flag provided but not defined: -bogus"},
		{line: "detect extra", command: "detect", says: `unexpected argument "extra"`},
		{line: "detect extra -o json", command: "detect", says: `unexpected argument "extra"`},
		{line: "detect help", command: "detect", says: `unexpected argument "help"`},
		{line: "detect --bogus=1", command: "detect", says: "flag provided but not defined: -bogus"},
		{line: "detect ---x", command: "detect", says: "bad flag syntax: ---x"},
		{line: "detect --netns /x", command: "detect", says: "flag provided but not defined: -netns"},
		{line: "detect --strict=x", command: "detect", says: `invalid boolean value "x" for -strict: parse error`},
		{line: "detect -o", command: "detect", says: "flag needs an argument: -o"},
		{
			line: "detect -o env", command: "detect",
			says: `output "env" is not one of text, table, json`,
		},
		{
			line: "detect --output=", command: "detect",
			says: `output "" is not one of text, table, json`,
		},
		{
			line: "detect -o json --output json", command: "detect",
			says: "Cannot use two forms of the same flag: o output",
		},
		{line: "detect --mode nft", command: "detect", says: "flag provided but not defined: -mode"},
		{line: "select both", command: "select", says: `backend "both" is not one of nft, legacy`},
		{line: "select nft legacy", command: "select", says: `unexpected argument "legacy"`},
		{line: "select --strict nft", command: "select", says: "--strict cannot be combined with a named backend"},
		{line: "select --dir /x", command: "select", says: "flag provided but not defined: -dir"},
		{line: "reset nft", command: "reset", says: `unexpected argument "nft"`},
		{line: "reset --dir /x", command: "reset", says: "flag provided but not defined: -dir"},
		{line: "reset extra", command: "reset", says: `unexpected argument "extra"`},
		{line: "install --root /x", command: "install", says: "flag provided but not defined: -root"},
		{line: "install --dir=", command: "install", says: `"" is not a directory`},
		{line: "install --dir /nowhere", command: "install", says: `"/nowhere" is not a directory`},
		{line: "install --dir /etc/passwd", command: "install", says: `"/etc/passwd" is not a directory`},
		{line: "install extra", command: "install", says: `unexpected argument "extra"`},
		{line: "doctor -o table", command: "doctor", says: `output "table" is not one of text, json`},
		{line: "doctor --dir /x", command: "doctor", says: "flag provided but not defined: -dir"},
		{line: "doctor extra", command: "doctor", says: `unexpected argument "extra"`},
	} {
		status, stdout, stderr := runs(append([]string{program}, strings.Fields(test.line)...)...)
		want := fmt.Sprintf("iptables-wrapper: %s (see iptables-wrapper --help)\n", test.says)
		if test.command != "" {
			want = fmt.Sprintf("iptables-wrapper: %s (see iptables-wrapper %s --help)\n", test.says, test.command)
		}
		if status != 2 || stdout != "" || stderr != want {
			t.Errorf("%q: status %d, stdout %q, stderr\n%swant\n%s", test.line, status, stdout, stderr, want)
		}
	}
}

// Answers and requested help go to stdout alone.
func TestAnswers(t *testing.T) {
	defer func(was string) { version = was }(version)
	version = "v1.2.3"
	const versionLine = "iptables-wrapper version v1.2.3 ("
	for _, test := range []struct{ line, begins, contains string }{
		{
			line: "version", begins: versionLine,
			contains: runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version(),
		},
		{line: "--version", begins: versionLine},
		{line: "-v", begins: versionLine},
		{line: "help", begins: "NAME:\n   iptables-wrapper - ", contains: "EXIT STATUS:\n   0    success\n"},
		{line: "--help", begins: "NAME:\n   iptables-wrapper - ", contains: "IPTABLES_WRAPPER_BACKEND"},
		{line: "-h", begins: "NAME:\n   iptables-wrapper - ", contains: "VERSION:\n   v1.2.3"},
		{line: "help detect", begins: "NAME:\n   iptables-wrapper detect - ", contains: "--output FORMAT"},
		{line: "detect --help", begins: "NAME:\n   iptables-wrapper detect - ", contains: "--strict"},
		{line: "install -h", begins: "NAME:\n   iptables-wrapper install - ", contains: "--force"},
		{line: "select --help", begins: "NAME:\n   iptables-wrapper select - ", contains: "[nft|legacy]"},
		{line: "reset --help", begins: "NAME:\n   iptables-wrapper reset - ", contains: "removes the record"},
		{line: "doctor --help", begins: "NAME:\n   iptables-wrapper doctor - ", contains: "--output FORMAT"},
	} {
		status, stdout, stderr := runs(append([]string{program}, strings.Fields(test.line)...)...)
		if status != 0 || !strings.HasPrefix(stdout, test.begins) || !strings.Contains(stdout, test.contains) ||
			stderr != "" {
			t.Errorf("%q: status %d, stdout %q, stderr %q", test.line, status, stdout, stderr)
		}
	}
}

// Help fits the terminal, which cannot wrap a table.
func TestHelpWidth(t *testing.T) {
	for _, command := range []string{"help", "detect", "doctor", "install", "select", "reset", "version"} {
		_, help, _ := runs(program, command, "--help")
		for line := range strings.Lines(help) {
			if len(line) > 80+len("\n") {
				t.Errorf("%s: %q has %d characters", command, line, len(line)-1)
			}
		}
	}
}

// A text stays one line, also in a pipe, and what a terminal might take for a command does not reach it.
func TestPrintable(t *testing.T) {
	var output bytes.Buffer
	printLine(&output, "%s\tb", "a\x1b[1m\n")
	printError(&output, errors.Join(errors.New("a\x1b[2m"), errors.New("b\rc")))
	if got := output.String(); got != "a [1m \tb\niptables-wrapper: a [2m; b c\n" {
		t.Errorf("got %q", got)
	}
}
