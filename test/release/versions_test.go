// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A binary reports a version, whatever it was built from.
func TestVersions(t *testing.T) {
	dir := checkout(t, "source")
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
	// As docker build does it, which TestReproducibleImage runs: the Dockerfile copies no repository.
	t.Run("without git", func(t *testing.T) {
		if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("make", "build")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		output(t, cmd)
		if got := output(t, exec.Command(filepath.Join(dir, "bin/iptables-wrapper"), "version")); got != "iptables-wrapper version "+version+"+source" {
			t.Errorf("got %q", got)
		}
	})
}

// moduleProxy returns a directory that serves this module as proxy.golang.org would after the release.
func moduleProxy(t *testing.T, dir string) string {
	t.Helper()
	proxy := t.TempDir()
	versions := filepath.Join(proxy, module, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(versions, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	put(version+".zip", archive.Bytes())
	put(version+".mod", read("go.mod"))
	put(version+".info", fmt.Appendf(nil, `{"Version": %q, "Time": "2026-11-21T12:00:00Z"}`, version))
	put("list", []byte(version+"\n"))
	return proxy
}
