// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// WrapperVariable names the program to test.
const WrapperVariable = "IPTABLES_WRAPPER"

// Commands are the commands that the wrapper is installed as.
var Commands = []string{
	"iptables", "iptables-save", "iptables-restore",
	"ip6tables", "ip6tables-save", "ip6tables-restore",
}

// Main runs tests that begin with Contain: in a container it makes the mounts, and outside it builds the program to
// test.
func Main(m *testing.M) {
	if os.Getenv(inside) == "" {
		_, err := Wrapper()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	MainOfPackage(m)
}

// MainOfPackage is Main for tests that need no program.
func MainOfPackage(m *testing.M) {
	err := Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

// Wrapper returns the program to test, which is built at the top of the repository unless the variable names one.
func Wrapper() (path string, err error) {
	if path := os.Getenv(WrapperVariable); path != "" {
		return path, nil
	}
	top, err := filepath.Abs("..")
	for ; err == nil && top != "/"; top = filepath.Dir(top) {
		if _, err := os.Stat(top + "/Makefile"); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	// "go test" takes a result from its cache unless it knows that the test depends on these.
	for _, pattern := range []string{"*", "*/*", "internal/*/*", "test/*/*"} {
		_, _ = filepath.Glob(filepath.Join(top, pattern))
	}
	// Tests of several packages may build it at the same time: each renames its own.
	path = filepath.Join(top, "bin", "iptables-wrapper")
	unfinished := fmt.Sprintf("%s.%d", path, os.Getpid())
	cmd := exec.Command("go", "build", "-tags", "urfave_cli_no_docs", "-o", unfinished, ".")
	cmd.Dir = top
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return path, errors.Join(os.Rename(unfinished, path), os.Setenv(WrapperVariable, path))
}

// PutWrapper copies the program to where an image would have it.
func PutWrapper(tb testing.TB, path string) {
	tb.Helper()
	content := Read(tb, os.Getenv(WrapperVariable))
	Check(tb, os.WriteFile(path, content, 0o755))
}

// LayOut makes the six commands of a container run a program through the switch, as install does without alternatives.
func LayOut(program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile("/usr/sbin/iptables-wrapper", content, 0o755),
		relink("/usr/sbin/iptables-current", "iptables-wrapper"),
	)
	for _, name := range Commands {
		err = errors.Join(err, relink("/usr/sbin/"+name, "iptables-current"))
	}
	return err
}

// End returns what a name points to, through all links.
func End(name string) string {
	path, err := filepath.EvalSymlinks(filepath.Join("/usr/sbin", name))
	if err != nil {
		return err.Error()
	}
	return path
}
