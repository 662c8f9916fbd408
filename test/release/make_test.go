// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const module = "github.com/iptables-wrappers/iptables-wrappers"

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, stdout.String(), stderr.String())
	}
	return strings.TrimSuffix(stdout.String(), "\n")
}

// checkout makes a repository of its own from the files here, changed ones included, with one commit whose bytes do not
// depend on who makes it, or when.
func checkout(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	host.Check(t, os.MkdirAll(dir, 0o755))
	cmd := exec.Command("sh", "-euc", `
git ls-files -z --cached --others --exclude-standard | tar --ignore-failed-read --null -cf - -T - | tar -C "$1" -xf -
cd "$1"
sed -i '/^## \[Unreleased\]/,/^## \[v/{//!d}' CHANGELOG.md # as on the day of a release
git init --quiet --initial-branch main
git add --all
git -c user.name=test -c user.email=test@example.com -c commit.gpgsign=false commit --quiet --message test
`, "-", dir)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-11-21T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-21T12:00:00Z", "GIT_CONFIG_GLOBAL=/dev/null")
	output(t, cmd)
	return dir
}

// limits are for a machine whose own are lower than podman's defaults.
var limits = []string{"--ulimit=nofile=20000:20000", "--ulimit=nproc=4096:4096"}

func podmanCommand(t *testing.T, storage string, args ...string) *exec.Cmd {
	t.Helper()
	for _, program := range []string{"podman", "runc", "mmdebstrap"} {
		if _, err := exec.LookPath(program); err != nil {
			host.Cannot(t, "run %s: it is not installed; make test installs it", program)
		}
	}
	run := filepath.Join(filepath.Dir(storage), "run")
	return exec.Command("podman", append([]string{
		"--root", storage, "--runroot", run, "--runtime", "runc", "--cgroup-manager", "cgroupfs", "--log-level", "error",
	}, args...)...)
}

// debianBase returns the root file system of an image that stands for the base of images/distroless, which cannot be
// pulled.
func debianBase(t *testing.T, arch string) string {
	t.Helper()
	if arch == "amd64" {
		return fromDebian(t, "trixie.tar", "--variant=apt", "--include=ca-certificates", `--aptopt=Acquire::Languages "none"`)
	}
	return fromDebian(t, "trixie-"+arch+"-base.tar", "--mode=root", "--skip=output/mknod", "--variant=apt", "--arch="+arch, `--aptopt=Acquire::Languages "none"`)
}

// fromDebian makes an archive of Debian packages, once on this machine: it stays where those of test/images are.
func fromDebian(t *testing.T, name string, options ...string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	tar := filepath.Join(cache, "iptables-wrappers", name)
	host.Run(t, "mkdir", "-p", filepath.Dir(tar))
	if _, err := os.Stat(tar); err != nil {
		unfinished := filepath.Join(t.TempDir(), name)
		args := append([]string{"--quiet", "--format=tar", `--aptopt=Acquire::Check-Valid-Until "false"`}, options...)
		cmd := exec.Command("mmdebstrap", append(args, "trixie", unfinished, "http://deb.debian.org/debian")...)
		if slices.Contains(args, "--mode=root") { // runs programs of that architecture
			cmd = host.Emulated(t, cmd)
		}
		output(t, cmd)
		host.Run(t, "mv", unfinished, tar)
	}
	return tar
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
		host.Check(t, json.Unmarshal([]byte(host.Run(t, "tar", "-xOf", filepath.Join(dist, name+".oci.tar"), file)), &i))
		return i
	}
	top := read("./index.json")
	for _, m := range read("./blobs/sha256/" + strings.TrimPrefix(top.Manifests[0].Digest, "sha256:")).Manifests {
		all = append(all, strings.TrimSuffix(m.Platform.OS+"/"+m.Platform.Architecture+"/"+m.Platform.Variant, "/"))
	}
	slices.Sort(all)
	return all
}
