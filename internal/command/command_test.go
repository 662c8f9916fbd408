// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/extensions"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// run runs a command line as main does.
func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Run(call.Wrapper(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// What the kernel has is said by family, and why something is not known.
func TestExtensions(t *testing.T) {
	support := func(family detect.Family, name string, has detect.Answer, err error) extensions.Support {
		return extensions.Support{Family: family, Extension: extensions.Extension{Name: name}, Has: has, Err: err}
	}
	var out bytes.Buffer
	s := &session{stdout: bufio.NewWriter(&out)}
	s.extensions([]extensions.Support{
		support(detect.IPv4, "mark", detect.Yes, nil),
		support(detect.IPv4, "owner", detect.Unknown, nil),
		support(detect.IPv4, "comment", detect.Yes, nil),
		support(detect.IPv4, "recent", detect.Unknown, nil),
		support(detect.IPv6, "mark", detect.No, nil),
		support(detect.IPv6, "owner", detect.Unknown, unix.EPERM),
		support(detect.IPv6, "comment", detect.Unknown, nil),
	})
	host.Check(t, s.stdout.Flush())
	want := `ipv4 kernel:    has mark comment
ipv4 kernel:    cannot be asked without loading a module: owner recent
ipv4 kernel:    on the node, this shows what it would load, and loads nothing: modprobe -a -n -v ipt_owner ipt_recent
ipv6 kernel:    lacks mark
ipv6 kernel:    not known (operation not permitted): owner
ipv6 kernel:    cannot be asked without loading a module: comment
ipv6 kernel:    on the node, this shows what it would load, and loads nothing: modprobe -a -n -v ip6t_comment
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// Wrong usage ends with 2, says what is wrong and where help is, and leaves stdout alone.
func TestUsage(t *testing.T) {
	for _, test := range []struct{ line, problem, help string }{
		{"bogus", `unknown command "bogus"`, ""},
		{"iptables -S", `unknown command "iptables"; did you mean "install"?`, ""},
		{"help bogus", `unknown command "bogus"`, ""},
		{"--help bogus", `unknown command "bogus"`, ""},
		{"--version bogus", `unexpected argument "bogus"`, ""},
		{"--version detect", `unexpected argument "detect"`, ""},
		{"status", `unknown command "status"`, ""},
		{"x", `unknown command "x"`, ""},
		{"--bogus", `unknown flag "--bogus"`, ""},
		{"-x", `unknown flag "-x"`, ""},
		{"version extra", `version: unexpected argument "extra"`, "version "},
		{"help detect extra", `help: unexpected argument "extra"`, "help "},
		{"detect --bogus=1", `detect: unknown flag "--bogus"`, "detect "},
		{"detect ---x", "detect: bad flag syntax: ---x", "detect "},
		{"detect extra", `detect: unexpected argument "extra"`, "detect "},
		{"doctor extra", `doctor: unexpected argument "extra"`, "doctor "},
		{"install extra", `install: unexpected argument "extra"`, "install "},
		{"select extra", `select: unexpected argument "extra"`, "select "},
		{"reset extra", `reset: unexpected argument "extra"`, "reset "},
		{"detect --strict=x", `detect: --strict takes no value`, "detect "},
		{"detect --wait", "detect: --wait needs a value", "detect "},
		{"detect --wait x", `detect: --wait "x" is not a duration such as 90s or 5m`, "detect "},
		{"detect --wait 5", `detect: --wait "5" is not a duration such as 90s or 5m`, "detect "},
		{"detect --wait 0s", `detect: --wait must be a positive duration such as 90s or 5m, not 0s`, "detect "},
		{"detect --wait -1s", `detect: --wait must be a positive duration such as 90s or 5m, not -1s`, "detect "},
		{"detect --pid 0x1", `detect: --pid "0x1" is not a process ID such as 1`, "detect "},
		{"detect --pid 0", `detect: --pid "0" is not a process ID such as 1`, "detect "},
		{"detect -o", "detect: -o needs a value", "detect "},
		{"detect --output", "detect: --output needs a value", "detect "},
		{"detect -o xml", `detect: --output "xml" is not one of text, table, json, env, nfd`, "detect "},
		{"select --for nothing", `select: --for "nothing" is not one of any, kubelet`, "select "},
		{"select --mode bogus", `select: --mode "bogus" is not one of auto, nft, legacy`, "select "},
		{"select --dir=", "select: --dir needs a path", "select "},
		{"reset --dir=", "reset: --dir needs a path", "reset "},
		{"detect --wait=", `detect: --wait "" is not a duration such as 90s or 5m`, "detect "},
		{"detect --for kubelet", "detect: --for needs --wait or --strict", "detect "},
		{"detect --for any", "detect: --for needs --wait or --strict", "detect "},
		{"detect --for kubelet --strict=false", "detect: --for needs --wait or --strict", "detect "},
		{"detect --netns /x --pid 1", "detect: --netns and --pid cannot be used together", "detect "},
		{"doctor --check --stale", "doctor: --check and --stale cannot be used together", "doctor "},
		{"doctor --check --all", "doctor: --check and --all cannot be used together", "doctor "},
		{"doctor --check -o json", "doctor: --check and --output json cannot be used together", "doctor "},
		{"doctor --stale --all", "doctor: --stale and --all cannot be used together", "doctor "},
		{"doctor --stale -o json", "doctor: --stale and --output json cannot be used together", "doctor "},
		{"doctor --all -o json", "doctor: --all and --output json cannot be used together", "doctor "},
		{"select --mode nft --wait 5m", "select: --mode nft and --wait cannot be used together", "select "},
		{"select --mode nft --for kubelet", "select: --mode nft and --for cannot be used together", "select "},
		{"select --mode legacy --guess", "select: --mode legacy and --guess cannot be used together", "select "},
		{"completion bash", `unknown command "completion"`, ""},
	} {
		status, stdout, stderr := run(append([]string{program}, strings.Fields(test.line)...)...)
		want := program + ": " + test.problem + "\n" + program + ": try: " + program + " " + test.help + "--help\n"
		if status != 2 || stdout != "" || stderr != want {
			t.Errorf("%q: status %d, stdout %q, stderr %q, want %q", test.line, status, stdout, stderr, want)
		}
	}
}

// A bare call prints the help, to stderr: it is not what a script asked for.
func TestBareCall(t *testing.T) {
	_, help, _ := run(program, "--help")
	for _, args := range [][]string{nil, {""}, {program}} {
		if status, stdout, stderr := run(args...); status != 2 || stdout != "" || stderr != help {
			t.Errorf("%q: status %d, stdout %q, stderr %q", args, status, stdout, stderr)
		}
	}
}

// Help fits the terminal, which cannot wrap a table.
func TestHelpWidth(t *testing.T) {
	for _, command := range []string{"help", "detect", "doctor", "install", "select", "reset", "version"} {
		_, help, _ := run(program, command, "--help")
		for line := range strings.Lines(help) {
			if len(line) > 80+len("\n") {
				t.Errorf("%s: %q has %d characters", command, line, len(line)-1)
			}
		}
	}
}

// A text stays one line, also in a pipe, and what a terminal might take for a command does not reach it.
func TestPrintable(t *testing.T) {
	var out, errs bytes.Buffer
	s := &session{stdout: bufio.NewWriter(&out), stderr: &errs}
	s.paragraph("fix:  ", strings.Repeat("RUN iptables-wrapper install\n", 10))
	s.paragraph("", "a\x1b[1m\nb")
	s.table("a\x1b[2m\tb")
	s.say("%v", errors.Join(errors.New("a\x1b[3m"), errors.New("b")))
	want := "fix:  " + strings.TrimSpace(strings.Repeat("RUN iptables-wrapper install ", 10)) +
		"\na [1m b\n\na [2m  b\n"
	if got := out.String(); got != want {
		t.Errorf("got %q", got)
	}
	if got := errs.String(); got != "iptables-wrapper: a [3m\niptables-wrapper: b\n" {
		t.Errorf("got %q", got)
	}
}

// Answers and requested help go to stdout alone.
func TestAnswers(t *testing.T) {
	version, revision = "v1.2.3", "0123456789ab"
	platform := runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version()
	const help = "NAME:\n   iptables-wrapper - run the iptables backend that the host uses\n"
	for _, test := range []struct{ line, begins, contains string }{
		{"version", "iptables-wrapper version v1.2.3 (revision 0123456789ab, " + platform + ")\n", ""},
		{"--version", "iptables-wrapper version v1.2.3 (revision 0123456789ab, " + platform + ")\n", ""},
		{"-v", "iptables-wrapper version v1.2.3 (revision 0123456789ab, " + platform + ")\n", ""},
		{"help", help, "EXIT STATUS:\n   0    success\n"},
		{"--help", help, "IPTABLES_WRAPPER_MODE"},
		{"-h", help, "IPTABLES_WRAPPER_DEBUG"},
		{"help help", "NAME:\n   iptables-wrapper help - ", "   iptables-wrapper help ["},
		{"help detect", "NAME:\n   iptables-wrapper detect - ", "--output"},
		{"detect --help", "NAME:\n   iptables-wrapper detect - ", "--wait DURATION"},
		{"install -h", "NAME:\n   iptables-wrapper install - ", "--force"},
		{"select --help", "NAME:\n   iptables-wrapper select - ", "--mode"},
		{"reset --help", "NAME:\n   iptables-wrapper reset - ", "--dir"},
		{"doctor --help", "NAME:\n   iptables-wrapper doctor - ", "--output"},
	} {
		status, stdout, stderr := run(append([]string{program}, strings.Fields(test.line)...)...)
		if status != 0 || !strings.HasPrefix(stdout, test.begins) || !strings.Contains(stdout, test.contains) ||
			stderr != "" {
			t.Errorf("%q: status %d, stdout %q, stderr %q", test.line, status, stdout, stderr)
		}
	}
}

// Each format prints something, is in the help, is shown on a page, and has a script that runs it.
func TestFormats(t *testing.T) {
	_, help, _ := run(program, "detect", "--help")
	pages := readAll(t, "../../docs/*.md")
	scripts := readAll(t, "../../test/script/*.txtar")
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
		var out bytes.Buffer
		s := &session{stdout: bufio.NewWriter(&out)}
		f.print(s, answer{Result: detect.Result{Mode: detect.NFT, Reason: detect.Default}})
		s.stdout.Flush()
		if out.Len() == 0 {
			t.Errorf("format %s: it prints nothing", f.name)
		}
		if !strings.Contains(help, "   "+f.name+" ") {
			t.Errorf("format %s: detect --help does not list it", f.name)
		}
		if !strings.Contains(pages, "-o "+f.name) && f.name != "text" {
			t.Errorf("format %s: no page of docs/ has \"-o %s\"", f.name, f.name)
		}
		if !strings.Contains(scripts, "detect -o "+f.name+"\n") {
			t.Errorf("format %s: no script of test/script/ runs \"detect -o %s\"", f.name, f.name)
		}
	}
	if list := "is not one of " + strings.Join(names, ", "); !strings.Contains(scripts, list) {
		t.Errorf("test/script/usage.txtar does not have %q", list)
	}
}

func readAll(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files: %v", pattern, err)
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// An answer that cannot be written is a failure.
func TestStdoutFails(t *testing.T) {
	var stderr bytes.Buffer
	status := Run(call.Wrapper(), []string{program, "version"}, full{}, &stderr)
	if status != 1 || !strings.Contains(stderr.String(), "no space left") {
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
