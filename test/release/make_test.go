// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
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
	cmd := exec.Command("sh", "-euc", `
git ls-files -z --cached --others --exclude-standard | tar --ignore-failed-read --null -cf - -T - | tar -C "$1" -xf -
cd "$1"
sed -i '/^## \[Unreleased\]/,/^## \[v/{//!d}' CHANGELOG.md # as on the day of a release
git init --quiet --initial-branch main
git add --all
git -c user.name=test -c user.email=test@example.com -c commit.gpgsign=false commit --quiet --message test
git repack -adq # one file to copy instead of hundreds
`, "-", source)
	cmd.Dir = "../.."
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

// newest is the version that the changelog names first.
func newest(t *testing.T) string {
	t.Helper()
	return newestIn(t, "../..")
}

func newestIn(t *testing.T, dir string) string {
	t.Helper()
	heading := regexp.MustCompile(`(?m)^## \[(v[0-9]+\.[0-9]+\.[0-9]+(-[^]]+)?)\]`)
	match := heading.FindSubmatch(host.Read(t, filepath.Join(dir, "CHANGELOG.md")))
	if match == nil {
		t.Fatal("CHANGELOG.md names no version")
	}
	return string(match[1])
}

func podmanCommand(t *testing.T, storage string, args ...string) *exec.Cmd {
	t.Helper()
	host.Needs(t, "podman", "runc", "mmdebstrap")
	return host.Podman(storage, filepath.Join(filepath.Dir(storage), "run"), args...)
}

// debianBase returns the root file system of an image that stands for the base of images/distroless, which cannot be
// pulled.
func debianBase(t *testing.T, arch string) string {
	t.Helper()
	if arch == "amd64" {
		return host.DebianTar(t, "trixie", "trixie", "--include=ca-certificates")
	}
	return host.DebianTar(t, "trixie", "trixie-"+arch+"-base", "--mode=root", "--skip=output/mknod", "--arch="+arch)
}

// platformsOf returns the platforms of an image in dist/, sorted.
func platformsOf(t *testing.T, dist, name string) (all []string) {
	t.Helper()
	type index struct {
		Manifests []struct {
			Digest   string
			Platform struct{ OS, Architecture, Variant string }
		}
	}
	read := func(file string) (i index) {
		t.Helper()
		host.Check(t, json.Unmarshal([]byte(host.Run(t, "tar", "-xOf", filepath.Join(dist, name+".oci.tar"), file)),
			&i))
		return i
	}
	top := read("index.json")
	for _, m := range read("blobs/sha256/" + strings.TrimPrefix(top.Manifests[0].Digest, "sha256:")).Manifests {
		all = append(all, strings.TrimSuffix(m.Platform.OS+"/"+m.Platform.Architecture+"/"+m.Platform.Variant, "/"))
	}
	slices.Sort(all)
	return all
}

// A binary reports a version, whatever it was built from.
func TestVersions(t *testing.T) {
	t.Parallel()
	dir := checkout(t, "source")
	says := func(program, want string) {
		t.Helper()
		got := output(t, exec.Command(program, "version"))
		if !regexp.MustCompile(`^iptables-wrapper version ` + want).MatchString(got) {
			t.Errorf("%s says %q, not %q", program, got, want)
		}
	}
	build := func(want string) {
		t.Helper()
		cmd := exec.Command("make", "build")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		output(t, cmd)
		says(filepath.Join(dir, "bin/iptables-wrapper"), regexp.QuoteMeta(newest(t))+want)
	}
	build(`\+source\.[0-9a-f]{7,} \(revision [0-9a-f]{12}, linux/`) // a clone without tags
	output(t, exec.Command("git", "-C", dir, "tag", newest(t)))
	build(` \(`)

	// What "go install" gives.
	bin, root := t.TempDir(), t.TempDir()
	cmd := exec.Command("go", "install", module+"@"+newest(t))
	cmd.Env = append(fromRepository(t, dir), "GOBIN="+bin)
	output(t, cmd)
	// Go names the binary after the module. install gives it its own name.
	says(filepath.Join(bin, "iptables-wrappers"), regexp.QuoteMeta(newest(t))+` \(`)
	output(t, exec.Command(filepath.Join(bin, "iptables-wrappers"), "install", "--dir", root))
	says(filepath.Join(root, "iptables-wrapper"), regexp.QuoteMeta(newest(t))+` \(`)

	// As docker build does it, which TestReproducibleImage runs: the Dockerfile copies no repository.
	host.Check(t, os.RemoveAll(filepath.Join(dir, ".git")))
	build(`\+source \(linux/`)
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
	output(t, exec.Command("git", "-C", source, "tag", newest(t)))
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
	result := detect.Host()
	fmt.Println(result.Mode, result.Reason)
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
	run("get", module+"@"+newest(t))
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

// What is not ready for a release is refused before anything is built.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := checkout(t, "source")
	for _, c := range []struct{ version, change, want string }{
		{"1.0.0", "", "is not a version"},
		{"v0.0.1", "", "has no section for v0.0.1"},
		{newest(t), "echo >>Makefile", "uncommitted changes"},
		{newest(t), `git checkout -q Makefile; sed -i 's/^## \[Unreleased\]/&\n\n### Fixed\n\n- A fix./' CHANGELOG.md
			git -c user.name=test -c user.email=test@example.com commit -qam test`, "entries in [Unreleased]"},
	} {
		cmd := exec.Command("sh", "-c", c.change+"\nexec release/build.sh "+c.version)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PODMAN=false")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%+v: %v\n%s", c, err, out)
		}
	}
}
