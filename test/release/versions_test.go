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
<<<<<<< HEAD
	says := func(program, want string) {
		t.Helper()
		if got := output(t, exec.Command(program, "version")); !regexp.MustCompile(`^iptables-wrapper version ` + want).MatchString(got) {
			t.Errorf("%s says %q, not %q", program, got, want)
		}
	}
	build := func(want string) {
		t.Helper()
=======
	t.Run("go install", func(t *testing.T) {
		proxy := moduleProxy(t, dir)
		bin := t.TempDir()
		cmd := exec.Command("go", "install", module+"@"+version)
		cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOPROXY=file://"+proxy+","+strings.TrimSpace(host.Run(t, "go", "env", "GOPROXY")),
			"GONOSUMDB="+module, "GOFLAGS=-modcacherw", "CGO_ENABLED=0")
		output(t, cmd)
		// Go names the binary after the module. install gives it its own name.
		root := t.TempDir()
		if got := output(t, exec.Command(filepath.Join(bin, "iptables-wrappers"), "version")); got != "iptables-wrapper version "+version {
			t.Errorf("got %q", got)
		}
		output(t, exec.Command(filepath.Join(bin, "iptables-wrappers"), "install", "--dir", root))
		if got := output(t, exec.Command(filepath.Join(root, "iptables-wrapper"), "version")); got != "iptables-wrapper version "+version {
			t.Errorf("got %q", got)
		}
	})
	// As docker build does it: the Dockerfile copies no repository.
	t.Run("without git", func(t *testing.T) {
		host.Check(t, os.RemoveAll(filepath.Join(dir, ".git")))
>>>>>>> 36ca096 (test: what the tests expect is in their tables, and the pages are printed from these)
		cmd := exec.Command("make", "build")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		output(t, cmd)
		says(filepath.Join(dir, "bin/iptables-wrapper"), regexp.QuoteMeta(version)+want)
	}
	build(`\+source\.[0-9a-f]{7,}\b`) // a clone without tags
	output(t, exec.Command("git", "-C", dir, "tag", version))
	build(`$`)

<<<<<<< HEAD
	// go install, where the repository on GitHub is this one. What else it needs is taken from the cache, if it is there.
	env := strings.Fields(host.Run(t, "go", "env", "GOMODCACHE", "GOPROXY"))
	bin, root := t.TempDir(), t.TempDir()
	cmd := exec.Command("go", "install", module+"@"+version)
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOPRIVATE="+module, "GOFLAGS=-modcacherw -trimpath", "GOMODCACHE="+t.TempDir(), "CGO_ENABLED=0",
		"GOPROXY=file://"+env[0]+"/cache/download,"+env[1],
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+dir+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module)
	output(t, cmd)
	// Go names the binary after the module. install gives it its own name.
	says(filepath.Join(bin, "iptables-wrappers"), regexp.QuoteMeta(version)+`$`)
	output(t, exec.Command(filepath.Join(bin, "iptables-wrappers"), "install", "--dir", root))
	says(filepath.Join(root, "iptables-wrapper"), regexp.QuoteMeta(version)+`$`)

	// As docker build does it, which TestReproducibleImage runs: the Dockerfile copies no repository.
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	build(`\+source$`)
=======
// moduleProxy returns a directory that serves this module as proxy.golang.org would after the release.
func moduleProxy(t *testing.T, dir string) string {
	t.Helper()
	proxy := t.TempDir()
	versions := filepath.Join(proxy, module, "@v")
	host.Check(t, os.MkdirAll(versions, 0o755))
	put := func(name string, content []byte) {
		t.Helper()
		host.Check(t, os.WriteFile(filepath.Join(versions, name), content, 0o644))
	}
	read := func(name string) []byte {
		t.Helper()
		content := host.Read(t, filepath.Join(dir, name))
		return content
	}
	files := strings.Split(strings.TrimSuffix(host.Run(t, "git", "-C", dir, "ls-files", "-z"), "\x00"), "\x00")
	var nested []string // modules of their own, which are no part of this one
	for _, name := range files {
		if filepath.Base(name) == "go.mod" && name != "go.mod" {
			nested = append(nested, filepath.Dir(name)+"/")
		}
	}
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
next:
	for _, name := range files {
		for _, n := range nested {
			if strings.HasPrefix(name, n) {
				continue next
			}
		}
		entry, err := w.Create(module + "@" + version + "/" + name)
		if err == nil {
			_, err = entry.Write(read(name))
		}
		host.Check(t, err)
	}
	host.Check(t, w.Close())
	put(version+".zip", archive.Bytes())
	put(version+".mod", read("go.mod"))
	put(version+".info", fmt.Appendf(nil, `{"Version": %q, "Time": "2026-11-21T12:00:00Z"}`, version))
	put("list", []byte(version+"\n"))
	return proxy
>>>>>>> 36ca096 (test: what the tests expect is in their tables, and the pages are printed from these)
}
