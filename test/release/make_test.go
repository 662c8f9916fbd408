// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(source)
	os.Exit(status)
}

// A binary reports the version of the tag that it was built from, by make and by "go install".
func TestVersions(t *testing.T) {
	t.Parallel()
	dir := checkout(t, "source")
	output(t, exec.Command("git", "-C", dir, "tag", tag))
	cmd := exec.Command("make", "build")
	cmd.Dir = dir
	output(t, cmd)
	bin := t.TempDir()
	cmd = exec.Command("go", "install", module+"@"+tag)
	cmd.Env = append(fromRepository(t, dir), "GOBIN="+bin)
	output(t, cmd)
	// Go names the binary after the module.
	for _, program := range []string{dir + "/bin/iptables-wrapper", bin + "/iptables-wrappers"} {
		got := output(t, exec.Command(program, "version"))
		if !strings.HasPrefix(got, "iptables-wrapper version "+tag+" (") {
			t.Errorf("%s says %q", program, got)
		}
	}
}

// A program that imports detect gets golang.org/x/sys and no other module, not even in go.sum.
func TestLibraryModule(t *testing.T) {
	t.Parallel()
	source := checkout(t, "source")
	output(t, exec.Command("git", "-C", source, "tag", tag))
	environment := fromRepository(t, source)
	dir := t.TempDir()
	oldest := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(host.Read(t, "../../go.mod"))
	for name, content := range map[string]string{
		"go.mod": "module example.com/user\n\ngo " + string(oldest[1]) + "\n",
		"main.go": `package main

import (
	"fmt"

	"` + module + `/detect"
)

func main() {
	result, _ := detect.Host("")
	fmt.Println(result.Backend, result.Reason)
}
`,
	} {
		host.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, environment
		return output(t, cmd)
	}
	run("get", module+"@"+tag)
	run("mod", "tidy")
	run("build", "-o", "user", ".")
	if got := output(t, exec.Command(filepath.Join(dir, "user"))); got == "" {
		t.Error("the program prints nothing")
	}
	sums := string(host.Read(t, filepath.Join(dir, "go.sum")))
	for line := range strings.Lines(sums) {
		name := strings.Fields(line)[0]
		if name != module && name != "golang.org/x/sys" {
			t.Errorf("go.sum has %s", line)
		}
	}
	linked := run("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	got := slices.Compact(slices.Sorted(strings.FieldsSeq(linked)))
	want := []string{"example.com/user", module, "golang.org/x/sys"}
	if !slices.Equal(got, want) {
		t.Errorf("the program is made of %q, want %q", got, want)
	}
	if text := string(host.Read(t, filepath.Join(dir, "go.mod"))); strings.Count(text, " v") != 2 {
		t.Errorf("go.mod requires more than two modules:\n%s", text)
	}
}
