// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// goLine finds the Go of the Dockerfile: its image, and the image's digest.
var goLine = regexp.MustCompile(
	`(?m)^(FROM )\S+/(golang:[0-9.]+-\S+)@(sha256:[0-9a-f]{64}) AS build$`)

// goUpdate is a clone whose Go is 1.26.1, with a remote of its own and a registry that has Go's images.
type goUpdate struct {
	dir, remote string
	registry    *registry
	calls       string
	environment []string
}

func newGoUpdate(t *testing.T) *goUpdate {
	t.Helper()
	host.Needs(t, "skopeo", "curl")
	u := &goUpdate{dir: checkout(t, "source"), remote: t.TempDir(), registry: newRegistry(t)}
	host.Run(t, "git", "init", "--quiet", "--bare", u.remote)
	for _, change := range []struct{ file, pattern, becomes string }{
		{"go.mod", `(?m)^toolchain .*$`, "toolchain go1.26.1"},
		{"test/script/go.mod", `(?m)^toolchain .*$`, "toolchain go1.26.1"},
		{"Makefile", `(?m)^NEWEST_GO := .*$`, "NEWEST_GO := go1.27.1"},
		{
			"Dockerfile", goLine.String(),
			"${1}" + u.registry.address() + "/library/golang:1.26.1-bookworm@${3} AS build",
		},
	} {
		path := filepath.Join(u.dir, change.file)
		old := string(host.Read(t, path))
		changed := regexp.MustCompile(change.pattern).ReplaceAllString(old, change.becomes)
		if changed == old {
			t.Fatalf("%s has nothing like %s", change.file, change.pattern)
		}
		host.Check(t, os.WriteFile(path, []byte(changed), 0o644))
	}
	program, calls := recorder(t)
	u.calls = calls
	u.environment = append(append(os.Environ(), committer...), "SKOPEO="+insecure(t, u.registry), "GH="+program)
	u.git(t, "remote", "add", "origin", u.remote)
	u.git(t, "commit", "--quiet", "--all", "--message", "old Go")
	u.git(t, "push", "--quiet", "origin", "HEAD:main")
	return u
}

func (u *goUpdate) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = u.dir, u.environment
	return output(t, cmd)
}

// run runs release/go.sh on main, with a list of Go's releases.
func (u *goUpdate) run(t *testing.T, releases ...string) (said string, err error) {
	t.Helper()
	u.git(t, "switch", "--quiet", "main")
	list := "["
	for _, release := range releases {
		list += ` {"version": "` + release + `", "stable": true, "files": [{"version": "` + release + `"}]},`
	}
	file := filepath.Join(t.TempDir(), "list.json")
	host.Check(t, os.WriteFile(file, []byte(strings.TrimSuffix(list, ",")+"]"), 0o644))
	cmd := exec.Command("release/go.sh")
	cmd.Dir, cmd.Env = u.dir, append(u.environment, "GO_RELEASES=file://"+file)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// publish puts an image into the registry.
func (u *goUpdate) publish(tag string) (content []byte) {
	content = []byte(`{"schemaVersion": 2, "manifests": [], "annotations": {"tag": "` + tag + `"}}`)
	path := "/v2/library/golang/manifests/" + tag
	u.registry.mutex.Lock()
	defer u.registry.mutex.Unlock()
	u.registry.content[path] = content
	u.registry.types[path] = "application/vnd.oci.image.index.v1+json"
	return content
}

// A patch release of Go becomes a branch and a pull request, once its image exists, and only once.
func TestGoRelease(t *testing.T) {
	t.Parallel()
	u := newGoUpdate(t)
	said, err := u.run(t, "go1.27.1", "go1.26.1")
	if err != nil || !strings.Contains(said, "are the newest") {
		t.Errorf("nothing is newer: %v %s", err, said)
	}
	said, err = u.run(t, "go1.27.2", "go1.26.12", "go1.26.9rc1")
	if err != nil || !strings.Contains(said, "does not exist yet") {
		t.Errorf("no image: %v %s", err, said)
	}
	image := u.publish("1.26.12-bookworm")
	said, err = u.run(t, "go1.27.2", "go1.26.12")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	const branch = "go-1.26.12-1.27.2"
	show := func(file string) string { return u.git(t, "show", "origin/"+branch+":"+file) }
	found := goLine.FindStringSubmatch(show("Dockerfile"))
	if found == nil || found[2] != "golang:1.26.12-bookworm" || found[3] != digest(image) {
		t.Errorf("the Dockerfile has %q, and the image is %s", found, digest(image))
	}
	for file, want := range map[string]string{
		"go.mod":             "\ntoolchain go1.26.12\n",
		"test/script/go.mod": "\ntoolchain go1.26.12\n",
		"Makefile":           "\nNEWEST_GO := go1.27.2\n",
		"CHANGELOG.md":       "\n## [Unreleased]\n\n- Built with Go 1.26.12.\n",
	} {
		if got := show(file); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q:\n%s", file, want, got)
		}
	}
	if changed := u.git(t, "diff", "--name-only", "main", "origin/"+branch); strings.Contains(changed, ".github") {
		t.Errorf("the workflow's token may not change workflows: %s", changed)
	}
	want := regexp.MustCompile(`^pr create --head ` + branch + ` --title Go 1\.26\.12 .*\n` +
		`workflow run ci\.yml --ref ` + branch + `\n$`)
	got := string(host.Read(t, u.calls))
	if !want.MatchString(got) {
		t.Errorf("gh was called with\n%s", got)
	}
	said, err = u.run(t, "go1.27.2", "go1.26.12")
	if err != nil || !strings.Contains(said, "the branch "+branch+" exists") || string(host.Read(t, u.calls)) != got {
		t.Errorf("again: %v %s", err, said)
	}
}

// A line that Go no longer supports becomes the oldest one that it does.
func TestGoUnsupported(t *testing.T) {
	host.InFull(t)
	t.Parallel()
	u := newGoUpdate(t)
	u.publish("1.27.3-bookworm")
	said, err := u.run(t, "go1.28.0", "go1.27.3")
	if err != nil || !strings.Contains(u.git(t, "show", "origin/go-1.27.3-1.28.0:go.mod"), "\ntoolchain go1.27.3\n") {
		t.Errorf("%v\n%s", err, said)
	}
}

// What cannot be known is an error, and no branch.
func TestGoErrors(t *testing.T) {
	host.InFull(t)
	t.Parallel()
	u := newGoUpdate(t)
	u.registry.Close()
	for _, c := range []struct {
		releases []string
		want     string
	}{
		{nil, "no releases"},
		{[]string{"go1.25.3", "go1.26.0"}, "1.26.1"},
		{[]string{"go1.27.2", "go1.26.2"}, "connection refused"},
	} {
		said, err := u.run(t, c.releases...)
		if err == nil || !strings.Contains(said, c.want) {
			t.Errorf("%q: %v\n%s", c.releases, err, said)
		}
	}
	if branches := u.git(t, "ls-remote", "--heads", "origin"); strings.Count(branches, "\n") != 0 {
		t.Errorf("the remote has %s", branches)
	}
}

// The image's tag v1 follows the newest release of version 1, and never goes back.
func TestImageTags(t *testing.T) {
	t.Parallel()
	dir := checkout(t, "source")
	for _, tag := range []string{"v1.0.0", "v1.9.0", "v1.10.0-rc.1", "v2.0.0"} {
		host.Run(t, "git", "-C", dir, "tag", tag)
	}
	for version, want := range map[string]string{
		"v1.0.1": "v1.0.1", "v1.9.0": "v1.9.0 v1", "v1.10.0": "v1.10.0 v1", "v1.10.0-rc.1": "v1.10.0-rc.1",
		"v2.0.1": "v2.0.1 v2",
	} {
		cmd := exec.Command("release/tags.sh", version)
		cmd.Dir = dir
		if got := strings.Join(strings.Fields(output(t, cmd)), " "); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}
