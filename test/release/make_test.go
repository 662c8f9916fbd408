// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const module = "github.com/iptables-wrappers/iptables-wrappers"

// tag is a version that nothing else has.
const tag = "v1.2.3"

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	return strings.TrimSuffix(host.Output(t, cmd), "\n")
}

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(source)
	os.Exit(status)
}

// source is the directory of a repository that commit has made.
var source string

// commit makes a repository of its own from the files here, changed ones included, with one commit whose bytes do not
// depend on who makes it, or when.
var commit = sync.OnceValue(func() error {
	var err error
	source, err = os.MkdirTemp("", "source")
	if err != nil {
		return err
	}
	err = host.Sources("../..", source)
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-euc", `
git init --quiet --initial-branch main
git add --all
git -c user.name=test -c user.email=test@example.com -c commit.gpgsign=false commit --quiet --message test
git repack -adq # one file to copy instead of hundreds
`)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-11-21T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-21T12:00:00Z",
		"GIT_CONFIG_GLOBAL=/dev/null")
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("commit the files: %w\n%s", err, said)
	}
	return nil
})

// checkout is a copy of that repository, for a test to change.
func checkout(t *testing.T, name string) string {
	t.Helper()
	host.Check(t, commit())
	dir := filepath.Join(t.TempDir(), name)
	host.Check(t, os.MkdirAll(dir, 0o755))
	host.Run(t, "cp", "-a", source+"/.", dir)
	host.Check(t, os.Chmod(dir, 0o755))
	return dir
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

// fromRepository is an environment in which the repository on GitHub is this one. What else a module needs is taken
// from the cache, if it is there.
func fromRepository(t *testing.T, dir string) []string {
	t.Helper()
	env := strings.Fields(host.Run(t, "go", "env", "GOMODCACHE", "GOPROXY"))
	return append(os.Environ(),
		"GOPRIVATE="+module,
		"GOFLAGS=-modcacherw -trimpath",
		"GOMODCACHE="+t.TempDir(),
		"GOPROXY=file://"+env[0]+"/cache/download,"+env[1],
		"CGO_ENABLED=0",
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url."+dir+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://"+module,
	)
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
