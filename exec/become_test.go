// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec_test

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// becoming is set in the environment of a test process that becomes its first argument.
const becoming = "IPTABLES_WRAPPER_TEST_BECOMING"

// given is the environment of what the test process becomes.
var given = []string{"EMPTY=", "TWO=1\n2", "TWICE=a", "TWICE=b", "not a variable"}

func TestMain(m *testing.M) {
	if os.Getenv(becoming) != "" {
		err := exec.Become(exec.Program{Path: os.Args[1]}, os.Args[2:], given)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	host.MainOfPackage(m)
}

// The test binary becomes cat(1), which prints what it has. cat is a C program, and so does not change its limits.
func TestBecome(t *testing.T) {
	program, err := osexec.LookPath("cat")
	if err != nil {
		host.Cannot(t, "become cat: %v", err)
	}
	self, err := os.Executable()
	host.Check(t, err)
	directory := t.TempDir()
	host.Check(t, os.WriteFile(directory+"/here", []byte("in the working directory"), 0o644))
	host.Check(t, os.WriteFile(directory+"/-", []byte("\n--\n"), 0o644))
	reader, writer, err := os.Pipe()
	host.Check(t, err)
	_, err = writer.WriteString("from the descriptor")
	host.Check(t, errors.Join(err, writer.Close()))
	defer reader.Close()

	argv := []string{"no/such/directory/cat", "--"}
	for _, file := range []string{"cmdline", "environ", "limits", "stat"} {
		argv = append(argv, "/proc/self/"+file, "./-")
	}
	argv = append(argv, "here", "./-", "/proc/self/fd/3")
	cmd := osexec.Command("sh", append([]string{"-c", `ulimit -S -n 123; exec "$@"`, "sh", self, program}, argv...)...)
	cmd.Dir = directory
	cmd.Env = []string{"PATH=/nowhere", becoming + "=1"}
	cmd.ExtraFiles = []*os.File{reader}
	printed := strings.Split(host.Output(t, cmd), "\n--\n")
	if len(printed) != 6 {
		t.Fatalf("got %q", printed)
	}
	if got := strings.Split(strings.TrimSuffix(printed[0], "\x00"), "\x00"); !slices.Equal(got, argv) {
		t.Errorf("arguments: got %q", got)
	}
	if environment := strings.Split(strings.TrimSuffix(printed[1], "\x00"), "\x00"); !slices.Equal(environment, given) {
		t.Errorf("environment: got %q", environment)
	}
	if !regexp.MustCompile(`(?m)^Max open files +123 `).MatchString(printed[2]) {
		t.Errorf("limits: got %s", printed[2])
	}
	if id, _, _ := strings.Cut(printed[3], " "); id != strconv.Itoa(cmd.ProcessState.Pid()) {
		t.Errorf("process: got %s, want %d", id, cmd.ProcessState.Pid())
	}
	if printed[4] != "in the working directory" || printed[5] != "from the descriptor" {
		t.Errorf("got %q", printed[4:])
	}
}

// Where execve(2) fails, Become returns, and says which file it was about.
func TestCannotBecome(t *testing.T) {
	directory := t.TempDir()
	host.Check(t, os.WriteFile(directory+"/unusable", nil, 0o644))
	host.Check(t, os.WriteFile(directory+"/text", []byte("no program\n"), 0o755))
	host.Check(t, os.WriteFile(directory+"/script", []byte("#!/no/such/program\n"), 0o755))
	for _, test := range []struct {
		doc, path string
		want      error
	}{
		{doc: "missing", path: directory + "/gone", want: unix.ENOENT},
		{doc: "not executable", path: directory + "/unusable", want: unix.EACCES},
		{doc: "a directory", path: directory, want: unix.EACCES},
		{doc: "no program", path: directory + "/text", want: unix.ENOEXEC},
		{doc: "what it needs is missing", path: directory + "/script", want: unix.ENOENT},
		{doc: "in no directory", path: directory + "/text/program", want: unix.ENOTDIR},
	} {
		checkCannotBecome(t, test.doc, test.path, []string{"iptables"}, test.want)
	}
	program, err := osexec.LookPath("true")
	if err != nil {
		host.Cannot(t, "become true: %v", err)
	}
	long := []string{"iptables", strings.Repeat("x", 1<<20)} // an argument can have 128 KiB
	checkCannotBecome(t, "too long", program, long, unix.E2BIG)
}

func checkCannotBecome(t *testing.T, doc, path string, argv []string, want error) {
	t.Helper()
	err := exec.Become(exec.Program{Path: path}, argv, nil)
	var about *os.PathError
	if !errors.Is(err, want) || !errors.As(err, &about) || about.Path != path || about.Op != "execve" {
		t.Errorf("%s: got %v, want %v", doc, err, want)
	}
}
