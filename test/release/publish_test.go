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
	host.Check(t, os.WriteFile(calls, nil, 0o666))
	host.Check(t, os.Chmod(calls, 0o666))
	return program, calls
}

// publish does what follows "make release" in the release workflow: it pushes the images to a registry, signs, and
// makes the GitHub release. It does so as somebody who is not root, in a checkout where root ran the tests and "make
// release": root owns bin/, if not all but dist/.
func publish(t *testing.T, dir, version string, images map[string]int) *registry {
	t.Helper()
	host.Check(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	letIn(t, dir)
	home := t.TempDir()
	letIn(t, home)
	host.Check(t, os.Chown(home, user, user))
	environment := append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home, "TMPDIR="+home,
		"PODMAN="+strings.Join(host.Podman(home+"/storage", home+"/run").Args, " ")+" --storage-driver vfs")
	r := newRegistry(t)
	program, calls := recorder(t)
	for _, script := range []string{"push", "sign", "publish"} {
		cmd := exec.Command("release/"+script+".sh", version)
		cmd.Dir = dir
		cmd.Env = append(environment, "REGISTRY="+r.address(), "PUSH_OPTIONS=--tls-verify=false",
			"COSIGN="+program+" cosign", "GH="+program+" gh")
		output(t, asUser(cmd))
	}
	got := string(host.Read(t, calls))
	for name, platforms := range images {
		tag := "/v2/" + name + "/manifests/" + version
		var index struct {
			Manifests []struct{ Digest string }
		}
		err := json.Unmarshal(r.content[tag], &index)
		if err != nil || len(index.Manifests) != platforms {
			t.Errorf("the registry has %s (%v)", r.content[tag], err)
		}
		for _, manifest := range index.Manifests {
			if r.content["/v2/"+name+"/manifests/"+manifest.Digest] == nil {
				t.Errorf("the registry lacks %s of %s", manifest.Digest, name)
			}
		}
		signed := "cosign sign --yes " + r.address() + "/" + name + "@" + digest(r.content[tag]) + "\n"
		if !strings.Contains(got, signed) {
			t.Errorf("no call %q in\n%s", signed, got)
		}
	}
	if strings.Count(got, "cosign sign --yes") != len(images) {
		t.Errorf("got calls\n%s", got)
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	bundle := lines[len(lines)-2]
	if bundle != "cosign sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS" {
		t.Errorf("got calls\n%s", got)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(host.Read(t, dir+"/dist/SHA256SUMS"))), "\n") {
		_, file, _ := strings.Cut(line, "  ")
		if !strings.Contains(lines[len(lines)-1]+" ", " dist/"+file+" ") {
			t.Errorf("%s is not published: %s", file, lines[len(lines)-1])
		}
	}
	return r
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

// The GitHub release has the changelog's section as its text, and is a pre-release if the version is one.
func TestPublished(t *testing.T) {
	t.Parallel()
	dir := checkout(t, "source")
	files := `mkdir dist && cd dist && echo one >iptables-wrapper-linux-amd64 && echo digest >images.sha256 &&
		sha256sum iptables-wrapper-linux-amd64 >SHA256SUMS && echo signature >SHA256SUMS.sigstore.json`
	host.Run(t, "sh", "-ec", "cd "+dir+" && "+files)
	program, calls := recorder(t)
	cmd := exec.Command("release/publish.sh", newest(t))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GH="+program+" gh")
	output(t, cmd)
	kind := ""
	if strings.Contains(newest(t), "-") {
		kind = "--prerelease "
	}
	want := regexp.MustCompile(`^gh release create ` + regexp.QuoteMeta(newest(t)) +
		` --verify-tag --title \S+ --notes-file \S+ ` + kind +
		`dist/iptables-wrapper-linux-amd64 dist/SHA256SUMS dist/SHA256SUMS\.sigstore\.json\n$`)
	got := host.Read(t, calls)
	if !want.Match(got) {
		t.Errorf("got call %s", got)
	}
	notes := string(host.Read(t, calls+".notes"))
	_, rest, _ := strings.Cut(string(host.Read(t, "../../CHANGELOG.md")), "\n## ["+newest(t)+"]")
	_, rest, _ = strings.Cut(rest, "\n")
	section, _, _ := strings.Cut(rest, "\n## [")
	section, _, _ = strings.Cut(section, "\n[Unreleased]:")
	// Links lead to the files of this version, and items have no line breaks of their own.
	section = regexp.MustCompile(`\]\(([^):]+)\)`).ReplaceAllString(section,
		"](https://"+module+"/blob/"+newest(t)+"/$1)")
	if !slices.Equal(strings.Fields(notes), strings.Fields(section)) || strings.TrimSpace(notes) == "" {
		t.Errorf("got notes\n%s\nwant\n%s", notes, section)
	}
	if broken := regexp.MustCompile(`\n +[^ -].*`).FindString(notes); broken != "" {
		t.Errorf("the notes have a broken line: %s", broken)
	}
}
