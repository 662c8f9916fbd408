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

// A binary reports a version, whatever it was built from.
func TestVersions(t *testing.T) {
	dir := checkout(t, "source")
	says := func(program, want string) {
		t.Helper()
		if got := output(t, exec.Command(program, "version")); !regexp.MustCompile(`^iptables-wrapper version ` + want).MatchString(got) {
			t.Errorf("%s says %q, not %q", program, got, want)
		}
	}
	build := func(want string) {
		t.Helper()
		cmd := exec.Command("make", "build")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		output(t, cmd)
		says(filepath.Join(dir, "bin/iptables-wrapper"), regexp.QuoteMeta(version)+want)
	}
	build(`\+source\.[0-9a-f]{7,} \(revision [0-9a-f]{12}, linux/`) // a clone without tags
	output(t, exec.Command("git", "-C", dir, "tag", version))
	build(` \(`)

	// go install, where the repository on GitHub is this one. What else it needs is taken from the cache, if it is there.
	env := strings.Fields(host.Run(t, "go", "env", "GOMODCACHE", "GOPROXY"))
	bin, root := t.TempDir(), t.TempDir()
	cmd := exec.Command("go", "install", module+"@"+version)
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOPRIVATE="+module, "GOFLAGS=-modcacherw -trimpath", "GOMODCACHE="+t.TempDir(), "CGO_ENABLED=0",
		"GOPROXY=file://"+env[0]+"/cache/download,"+env[1],
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+dir+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module)
	output(t, cmd)
	// Go names the binary after the module. install gives it its own name.
	says(filepath.Join(bin, "iptables-wrappers"), regexp.QuoteMeta(version)+` \(`)
	output(t, exec.Command(filepath.Join(bin, "iptables-wrappers"), "install", "--dir", root))
	says(filepath.Join(root, "iptables-wrapper"), regexp.QuoteMeta(version)+` \(`)

	// As docker build does it, which TestReproducibleImage runs: the Dockerfile copies no repository.
	host.Check(t, os.RemoveAll(filepath.Join(dir, ".git")))
	build(`\+source \(linux/`)
}
