// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
)

// run runs a command line as main does.
func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Run(call.Wrapper(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// Wrong usage ends with 2, says what is wrong and where help is, and leaves stdout alone.
func TestUsage(t *testing.T) {
	const missing = "missing command: one of detect, doctor, install, select, reset, completion, help, version"
	for _, test := range []struct{ line, problem, help string }{
		{"", missing, ""},
		{"bogus", `unknown command "bogus"`, ""},
		{"iptables -S", `unknown command "iptables"`, ""},
		{"help bogus", `unknown command "bogus"`, ""},
		{"--bogus", "unknown flag --bogus", ""},
		{"-x", "unknown flag --x", ""},
		{"--version bogus", `version: unexpected argument "bogus"`, "version "},
		{"version extra", `version: unexpected argument "extra"`, "version "},
		{"help detect extra", `help: unexpected argument "extra"`, "help "},
		{"detect --bogus", "detect: unknown flag --bogus", "detect "},
		{"detect extra", `detect: unexpected argument "extra"`, "detect "},
		{"doctor extra", `doctor: unexpected argument "extra"`, "doctor "},
		{"install extra", `install: unexpected argument "extra"`, "install "},
		{"select extra", `select: unexpected argument "extra"`, "select "},
		{"reset extra", `reset: unexpected argument "extra"`, "reset "},
		{"detect --strict=x", `detect: --strict takes no value, not "x"`, "detect "},
		{"detect --wait", "detect: --wait needs a value; example: --wait 90s", "detect "},
		{"detect --wait x", `detect: --wait "x" is not a valid value; example: --wait 90s`, "detect "},
		{"detect --wait 0s", "detect: --wait must be a positive duration such as 90s or 5m, not 0s", "detect "},
		{"detect --wait -1s", "detect: --wait must be a positive duration such as 90s or 5m, not -1s", "detect "},
		{"detect -o", "detect: --output needs a value; example: --output json", "detect "},
		{"detect -o xml", `detect: --output "xml" is not one of text, table, json, env, nfd`, "detect "},
		{"select --mode bogus", `select: --mode "bogus" is not one of auto, nft, legacy`, "select "},
		{"select --dir=", "select: --dir needs a path such as /usr/sbin", "select "},
		{"reset --dir=", "reset: --dir needs a path such as /usr/sbin", "reset "},
		{"completion", "completion: missing shell: one of bash, zsh, fish", "completion "},
		{"completion csh", `completion: shell "csh" is not one of bash, zsh, fish`, "completion "},
	} {
		status, stdout, stderr := run(append([]string{program}, strings.Fields(test.line)...)...)
		want := program + ": " + test.problem + "\n" + program + ": hint: see " + program + " " + test.help + "--help\n"
		if status != 2 || stdout != "" || stderr != want {
			t.Errorf("%q: status %d, stdout %q, stderr %q, want %q", test.line, status, stdout, stderr, want)
		}
	}
	if status, stdout, stderr := run(); status != 2 || stdout != "" || !strings.HasPrefix(stderr, program+": "+missing) {
		t.Errorf("no arguments at all: status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

// Answers and requested help go to stdout alone.
func TestAnswers(t *testing.T) {
	version = "v1.2.3"
	const help = "NAME:\n   iptables-wrapper - run the iptables backend that the host uses\n"
	for _, test := range []struct{ line, begins, contains string }{
		{"version", "iptables-wrapper version v1.2.3\n", ""},
		{"--version", "iptables-wrapper version v1.2.3\n", ""},
		{"-v", "iptables-wrapper version v1.2.3\n", ""},
		{"help", help, "EXIT STATUS:\n   0    success\n"},
		{"--help", help, "IPTABLES_WRAPPER_MODE"},
		{"-h", help, "EXAMPLES:\n"},
		{"help detect", "NAME:\n   iptables-wrapper detect - ", "--output"},
		{"detect --help", "NAME:\n   iptables-wrapper detect - ", "--wait DURATION"},
		{"install -h", "NAME:\n   iptables-wrapper install - ", "--force"},
		{"select --help", "NAME:\n   iptables-wrapper select - ", "--mode"},
		{"reset --help", "NAME:\n   iptables-wrapper reset - ", "--dir"},
		{"doctor --help", "NAME:\n   iptables-wrapper doctor - ", "--output"},
		{"completion bash", "_iptables_wrapper() {\n", "detect"},
		{"completion zsh", "#compdef iptables-wrapper\n", "detect"},
		{"completion fish", "", "complete -c iptables-wrapper"},
	} {
		status, stdout, stderr := run(append([]string{program}, strings.Fields(test.line)...)...)
		if status != 0 || !strings.HasPrefix(stdout, test.begins) || !strings.Contains(stdout, test.contains) || stderr != "" {
			t.Errorf("%q: status %d, stdout %q, stderr %q", test.line, status, stdout, stderr)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// An answer that cannot be written is a failure.
func TestStdoutFails(t *testing.T) {
	var stderr bytes.Buffer
	if status := Run(call.Wrapper(), []string{program, "version"}, full{}, &stderr); status != 1 || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("status %d, %q", status, stderr.String())
	}
}

// A wrong value of the variable is wrong usage.
func TestVariable(t *testing.T) {
	t.Setenv("IPTABLES_WRAPPER_MODE", "both")
	status, stdout, stderr := run(program, "detect")
	if status != 2 || stdout != "" || !strings.Contains(stderr, `"both" is not one of auto, nft, legacy`) {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}
