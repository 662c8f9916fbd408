// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Others build the wrapper in their own builder stages, with the flags of the file that is named. Each way gives the
// whole product: the command line, and the call.
func TestBuilds(t *testing.T) {
	host.InFull(t)
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "clone")
	host.Check(t, host.Sources("../..", clone))
	host.Run(t, "sh", "-ec", `cd "$0" && git init --quiet && git add --all
		git -c user.name=test -c user.email=test@example.com -c commit.gpgsign=false commit --quiet --message test`,
		clone)
	for _, c := range []struct{ name, script, result string }{
		{"plain", "go build -o $OUT/wrapper .", "wrapper"},
		// cilium/cilium images/runtime/build-iptables-wrapper.sh 38f14ed9f88185962a3166fcb41dab3063dcd959
		{"cilium", `for arch in amd64 arm64; do mkdir -p "$OUT/linux/${arch}/bin"
			GOARCH="${arch}" CGO_ENABLED=0 go build -ldflags='-s -w -extldflags="-static" -buildid=""' -trimpath ` +
			`-o "$OUT/linux/${arch}/bin/iptables-wrapper" github.com/iptables-wrappers/iptables-wrappers
			done`, "linux/amd64/bin/iptables-wrapper"},
		// wolfi-dev/os iptables-wrappers.yaml aa533c9476e94ed7d9a749307ceee13469114eb1 gives "packages: ." and an
		// output to chainguard-dev/melange pkg/build/pipelines/go/build.yaml 074bfa24429b7cbafc63bcb207425146f890eaec
		{"wolfi", `go build -o "$OUT"/usr/bin/iptables-wrappers -tags "" -ldflags "" -trimpath .`,
			"usr/bin/iptables-wrappers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			cmd := exec.Command("sh", "-ec", c.script)
			cmd.Dir, cmd.Env = clone, append(os.Environ(), "OUT="+out)
			host.Output(t, cmd)
			whole(t, filepath.Join(out, c.result))
		})
	}
	t.Run("golang:alpine", func(t *testing.T) {
		t.Parallel()
		whole(t, inAlpine(t, clone))
	})
}

// alpine makes a root with the tools of golang:alpine: busybox, Go, and make, which kube-router adds. There is neither
// bash nor git.
const alpine = `
mount --make-rprivate /
tar -C "$ROOT" -xf "$TAR"
cd "$ROOT"
mv usr/bin/busybox usr/bin/make .
rm -rf usr/bin usr/sbin usr/local
mkdir -p usr/bin usr/sbin usr/local/go root/go root/.cache src
mv make busybox usr/bin/
chroot . /usr/bin/busybox --install -s /usr/bin
mount --bind "$GOROOT" usr/local/go
mkdir -p root/go/pkg/mod root/.cache/go-build
mount --bind "$GOMODCACHE" root/go/pkg/mod
mount --bind "$GOCACHE" root/.cache/go-build
mount --bind "$CLONE" src
mount -t proc none proc
mount --rbind /dev dev
exec chroot . /usr/bin/env -i HOME=/root PATH=/usr/local/go/bin:/usr/bin:/bin GOTOOLCHAIN=local GOPROXY=off \
	BUILD_IN_DOCKER=false CGO_ENABLED=0 GOOS=linux GOARCH= sh -ec '! command -v bash git && cd /src && "$@"' - "$@"
`

// inAlpine builds as kube-router does: cloudnativelabs/kube-router Dockerfile 7c2c2779e397b15b85dc5fd2b6e6ff2c64c38596.
func inAlpine(t *testing.T, clone string) (binary string) {
	t.Helper()
	host.NeedsRoot(t, "change the root")
	host.Needs(t, "mmdebstrap", "unshare")
	mine := filepath.Join(t.TempDir(), "mine")
	host.Run(t, "cp", "-a", clone, mine)
	env := strings.Fields(host.Run(t, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"))
	cmd := exec.Command("unshare", "--mount", "sh", "-euc", alpine, "-",
		"sh", "-ec", `export GOARM="" && make build && test -x bin/iptables-wrapper`)
	cmd.Env = append(os.Environ(), "ROOT="+t.TempDir(), "CLONE="+mine, "GOROOT="+env[0], "GOMODCACHE="+env[1],
		"GOCACHE="+env[2], "TAR="+host.DebianTar(t, "trixie", "trixie-busybox", "--include=busybox-static,make"))
	host.Output(t, cmd)
	return filepath.Join(mine, "bin/iptables-wrapper")
}

// whole checks that a program has the command line, and becomes iptables where it is called as that.
func whole(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	host.Run(t, "cp", program, dir+"/iptables-wrapper")
	if got := host.Run(t, dir+"/iptables-wrapper", "version"); !strings.HasPrefix(got, "iptables-wrapper version ") {
		t.Errorf("version: got %q", got)
	}
	host.Check(t, os.Symlink("iptables-wrapper", dir+"/ip6tables-save"))
	script := "#!/bin/sh\necho became $0 $*\n"
	host.Check(t, os.WriteFile(dir+"/xtables-legacy-multi", []byte(script), 0o755))
	cmd := exec.Command(dir+"/ip6tables-save", "-t", "nat")
	cmd.Env = []string{"IPTABLES_WRAPPER_BACKEND=legacy"}
	want := "became " + dir + "/xtables-legacy-multi -t nat\n"
	if got := host.Output(t, cmd); got != want {
		t.Errorf("the call: got %q, want %q", got, want)
	}
	file, err := elf.Open(program)
	host.Check(t, err)
	defer file.Close()
	if file.Section(".interp") != nil || file.Section(".dynamic") != nil {
		t.Error("it is not static")
	}
}

// SECURITY.md names the modules that are linked in, and packages that are not.
func TestLinked(t *testing.T) {
	binary := os.Getenv(host.WrapperVariable)
	info, err := buildinfo.ReadFile(binary)
	host.Check(t, err)
	var modules []string
	for _, module := range info.Deps {
		modules = append(modules, module.Path)
	}
	slices.Sort(modules)
	want := []string{"github.com/urfave/cli/v2", "github.com/xrash/smetrics", "golang.org/x/sys"}
	if !slices.Equal(modules, want) {
		t.Errorf("%q are linked in, want %q", modules, want)
	}
	packages := strings.Fields(host.Run(t, "go", "list", "-deps", "-tags", "urfave_cli_no_docs", "../.."))
	for _, unwanted := range []string{"net/http", "crypto/tls", "archive/tar", "encoding/xml", "net", "testing"} {
		if slices.Contains(packages, unwanted) {
			t.Errorf("%s is linked in", unwanted)
		}
	}
}
