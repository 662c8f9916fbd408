// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-euc", `
git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for f; do if [ -e "$f" ]; then cp --parents "$f" "$0"; fi; done' "$1"
cd "$1"
git init --quiet --initial-branch main
git add --all
git -c user.name=test -c user.email=test@example.com -c commit.gpgsign=false commit --quiet --message test
`, "-", dir)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-11-21T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-21T12:00:00Z", "GIT_CONFIG_GLOBAL=/dev/null")
	output(t, cmd)
	return dir
}

// cache is where base images and podman's storage stay for the next run; test/images uses the same.
func cache(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "iptables-wrappers")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func podmanCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	for _, program := range []string{"podman", "runc", "mmdebstrap"} {
		if _, err := exec.LookPath(program); err != nil {
			host.Cannot(t, "run %s: it is not installed; make test-all installs it", program)
		}
	}
	return exec.Command("podman", append([]string{
		"--root", filepath.Join(cache(t), "storage"), "--runroot", "/run/iptables-wrappers-test",
		"--runtime", "runc", "--cgroup-manager", "cgroupfs", "--log-level", "error",
	}, args...)...)
}

func podman(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, podmanCommand(t, args...))
}

// debianBase returns an image of this machine's architecture that stands for the base of images/distroless, which
// cannot be pulled.
func debianBase(t *testing.T) string {
	t.Helper()
	tar := fromDebian(t, "trixie.tar", "--variant=apt", "--include=ca-certificates", `--aptopt=Acquire::Languages "none"`)
	const name = "localhost/debian:trixie"
	if podmanCommand(t, "image", "exists", name).Run() != nil {
		podman(t, "import", "--quiet", tar, name)
	}
	return name
}

// arm64Root returns a directory with Debian's iptables for arm64.
func arm64Root(t *testing.T) string {
	t.Helper()
	tar := fromDebian(t, "trixie-arm64.tar", "--variant=extract", "--arch=arm64", "--include=iptables,busybox-static,netbase",
		`--extract-hook=cd "$1" && ln -s usr/bin usr/sbin usr/lib .`)
	root := t.TempDir()
	output(t, exec.Command("tar", "-C", root, "--exclude=./dev/*", "-xf", tar))
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		if err := os.Symlink("xtables-nft-multi", filepath.Join(root, "usr/sbin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// fromDebian makes an archive of Debian packages, once on this machine.
func fromDebian(t *testing.T, name string, options ...string) string {
	t.Helper()
	tar := filepath.Join(cache(t), name)
	if _, err := os.Stat(tar); err != nil {
		unfinished := filepath.Join(t.TempDir(), name)
		args := append([]string{"--quiet", "--format=tar", `--aptopt=Acquire::Check-Valid-Until "false"`}, options...)
		output(t, exec.Command("mmdebstrap", append(args, "trixie", unfinished, "http://deb.debian.org/debian")...))
		host.Run(t, "mv", unfinished, tar)
	}
	return tar
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

// serveRegistry starts a registry and returns its address.
func serveRegistry(t *testing.T, crane string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	cmd := exec.Command(crane, "registry", "serve", "--address", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 300 {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
			return address
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the registry does not answer")
	return ""
}
