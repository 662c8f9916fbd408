// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// recorder returns a program that writes down how it was called, and the file that it writes to. It stands for what
// signs, and for what talks to GitHub.
func recorder(t *testing.T) (program, calls string) {
	t.Helper()
	dir := t.TempDir()
	program, calls = filepath.Join(dir, "recorder"), filepath.Join(dir, "calls")
	script := `#!/bin/sh
echo "$*" >>` + calls + `
while [ $# -gt 0 ]; do
	case $1 in
	--notes-file) cat "$2" >` + calls + `.notes ;;
	--bundle) echo signature >"$2" ;;
	esac
	shift
done
`
	host.Check(t, os.WriteFile(program, []byte(script), 0o755))
	for _, file := range []string{calls, calls + ".notes"} {
		host.Check(t, os.WriteFile(file, nil, 0o666))
		host.Check(t, os.Chmod(file, 0o666))
	}
	return program, calls
}

// publish does what follows "make release" in the release workflow: it pushes the image to a registry, signs, and makes
// the GitHub release. It does so as somebody who is not root.
func publish(t *testing.T, dir, version string, platforms int) {
	t.Helper()
	host.NeedsRoot(t, "become another user")
	host.Needs(t, "podman", "skopeo", "runc", "unshare", "setpriv")
	letIn(t, dir)
	host.Run(t, "chown", "-R", fmt.Sprint(user, ":", user), dir)
	home := t.TempDir()
	letIn(t, home)
	host.Check(t, os.Chown(home, user, user))
	r := newRegistry(t)
	program, calls := recorder(t)
	host.Run(t, "git", "-C", dir, "-c", "safe.directory="+dir, "tag", version)
	environment := append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home, "TMPDIR="+home,
		"PODMAN="+strings.Join(host.Podman(home+"/storage", home+"/run").Args, " ")+" --storage-driver vfs",
		"REGISTRY="+r.address(), "PUSH_OPTIONS=--tls-verify=false", "SKOPEO="+insecure(t, r),
		"COSIGN="+program+" cosign", "GH="+program+" gh")
	for _, script := range []string{"push.sh", "sign.sh", "publish.sh"} {
		cmd := exec.Command("release/"+script, version)
		cmd.Dir, cmd.Env = dir, environment
		output(t, asUser(cmd))
	}
	got := string(host.Read(t, calls))
	tag := "/v2/iptables-wrapper/manifests/" + version
	var index struct {
		Manifests []struct {
			Digest   string
			Platform struct{ OS, Architecture, Variant string }
		}
	}
	err := json.Unmarshal(r.content[tag], &index)
	if err != nil || len(index.Manifests) != platforms {
		t.Errorf("the registry has %s (%v)", r.content[tag], err)
	}
	follows := r.content["/v2/iptables-wrapper/manifests/"+strings.Split(version, ".")[0]]
	if strings.Contains(version, "-") == bytes.Equal(follows, r.content[tag]) {
		t.Errorf("the tag of the major version is %s", follows)
	}
	for _, manifest := range index.Manifests {
		p := manifest.Platform
		if _, known := machines[p.Architecture+p.Variant]; !known && p.Architecture != "arm64" || p.OS != "linux" {
			t.Errorf("there is an image for %+v", p)
		}
		if r.content["/v2/iptables-wrapper/manifests/"+manifest.Digest] == nil {
			t.Errorf("the registry lacks %s", manifest.Digest)
		}
	}
	want := "cosign sign --yes " + r.address() + "/iptables-wrapper@" + digest(r.content[tag]) + "\n" +
		"cosign sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS\n" + "gh release create "
	if !strings.HasPrefix(got, want) {
		t.Errorf("got calls\n%s", got)
	}
	for line := range strings.Lines(string(host.Read(t, dir+"/dist/SHA256SUMS"))) {
		_, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if !strings.Contains(got, " dist/"+file+" ") {
			t.Errorf("%s is not published: %s", file, got)
		}
	}
	checkNotes(t, dir, version, got, string(host.Read(t, calls+".notes")))
}

// user is somebody who is not root.
const user = 65534

// asUser makes a command that user runs. Podman leaves a process behind for its user namespace. It ends with this PID
// namespace.
func asUser(cmd *exec.Cmd) *exec.Cmd {
	cmd.Path = "/usr/bin/unshare"
	cmd.Args = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
		"setpriv", fmt.Sprint("--reuid=", user), fmt.Sprint("--regid=", user), "--clear-groups"}, cmd.Args...)
	return cmd
}

// letIn lets everybody into a directory below one of the test's own.
func letIn(t *testing.T, dir string) {
	t.Helper()
	for above := filepath.Dir(dir); above != os.TempDir(); above = filepath.Dir(above) {
		host.Check(t, os.Chmod(above, 0o755))
	}
}

// checkNotes checks the release's text: the changelog's section, with links to the files of this version, and without
// broken lines in items. A version with a hyphen is a pre-release.
func checkNotes(t *testing.T, dir, version, calls, notes string) {
	t.Helper()
	if strings.Contains(calls, " --prerelease ") != strings.Contains(version, "-") {
		t.Errorf("got calls\n%s", calls)
	}
	_, rest, _ := strings.Cut(string(host.Read(t, dir+"/CHANGELOG.md")), "\n## ["+version+"]")
	_, rest, _ = strings.Cut(rest, "\n")
	section, _, _ := strings.Cut(rest, "\n[Unreleased]:")
	section = regexp.MustCompile(`\]\(([^):]+)\)`).ReplaceAllString(section,
		"](https://"+module+"/blob/"+version+"/$1)")
	if !slices.Equal(strings.Fields(notes), strings.Fields(section)) || strings.TrimSpace(notes) == "" {
		t.Errorf("got notes\n%.2000s\nwant\n%.2000s", notes, section)
	}
	if broken := regexp.MustCompile(`\n +[^ -].*`).FindString(notes); broken != "" {
		t.Errorf("the notes have a broken line: %s", broken)
	}
}
