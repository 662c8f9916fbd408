// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// bases are the images that others start from here, each made once, by name.
var bases sync.Map

type baseImage struct {
	sync.Mutex
	tried bool
	image string
}

// base returns an image that stands for a distribution's own, and the wrapper's own.
func base(tb testing.TB, name string) string {
	tb.Helper()
	possible(tb)
	made, _ := bases.LoadOrStore(name, new(baseImage))
	b := made.(*baseImage)
	b.Lock()
	defer b.Unlock()
	if !b.tried {
		b.tried = true
		b.image = makeBase(tb, name)
	}
	if b.image == "" {
		tb.Fatalf("base image %s could not be made", name)
	}
	return b.image
}

func makeBase(tb testing.TB, name string) string {
	tb.Helper()
	distribution, variant, _ := strings.Cut(name, ":")
	switch distribution {
	case "debian":
		return debian(tb, variant)
	case "shell":
		// A static shell, to be brought along into containers.
		ref := build(tb, name, dockerfile(tb, "FROM "+base(tb, "debian:trixie"),
			"RUN apt-get update && apt-get install --yes --no-install-recommends busybox-static"))
		id := podman(tb, "create", ref, "-")
		defer podman(tb, "rm", id)
		path := filepath.Join(baseDir, "busybox")
		podman(tb, "cp", id+":/bin/busybox", path)
		return path
	case "capable-shell":
		path := filepath.Join(baseDir, "busybox-capable")
		host.Run(tb, "cp", base(tb, "shell"), path)
		host.Run(tb, "setcap", "cap_net_admin,cap_net_raw=ep", path)
		return path
	case "golang":
		return build(tb, name, "bases/golang", "--build-arg", "BASE="+base(tb, "debian:bookworm"))
	case "iptables-wrapper":
		return build(tb, name, top, goArgs(tb)...)
	case "debs":
		// The iptables package as a file, to reinstall it without a network.
		return build(tb, "debs-"+variant, dockerfile(tb, "FROM "+base(tb, "debian:"+variant),
			"WORKDIR /debs", "RUN apt-get update && apt-get download iptables"))
	case "fedora":
		return build(tb, "base-fedora", "bases/fedora", "--build-arg", "BASE="+base(tb, "debian:trixie"))
	case "busybox":
		rootfs := build(tb, "base-rootfs", top+"/images/distroless", append([]string{"--target", "rootfs"},
			instead(tb, top+"/images/distroless/Dockerfile", base(tb, "debian:trixie"))...)...)
		return build(tb, "base-"+variant, "bases/busybox",
			"--build-arg", "ROOTFS="+rootfs, "--build-arg", "LAYOUT="+variant)
	}
	tb.Fatalf("no base image %q", name)
	return ""
}

// debian makes an image of a suite from Debian's archive.
func debian(tb testing.TB, suite string) string {
	tb.Helper()
	tar := host.DebianTar(tb, suite, suite, "--include=ca-certificates")
	name := "localhost/debian:" + suite
	if command(tb, "image", "exists", name).Run() != nil {
		podman(tb, "import", "--quiet", tar, name)
	}
	return name
}

// goArgs let the Dockerfile at the top build with this machine's Go and what it has downloaded and compiled already.
func goArgs(tb testing.TB) []string {
	tb.Helper()
	env := strings.Fields(host.Run(tb, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"))
	return []string{
		"--build-context", pinned(tb, top+"/Dockerfile") + "=container-image://" + base(tb, "golang"),
		"--timestamp", "0",
		"--volume=" + env[0] + ":/usr/local/go:ro", "--volume=" + env[1] + ":/root/go/pkg/mod",
		"--volume=" + env[2] + ":/root/.cache/go-build",
	}
}

// pinnedLine is a line of a Dockerfile that Dependabot can read: it knows no build arguments.
var pinnedLine = regexp.MustCompile(`(?m)^FROM (\S+:\S+@sha256:[0-9a-f]{64})( AS \S+)?$`)

// pinned returns the only base image that a Dockerfile names by its digest.
func pinned(tb testing.TB, file string) string {
	tb.Helper()
	found := pinnedLine.FindAllSubmatch(host.Read(tb, file), -1)
	if len(found) != 1 {
		tb.Fatalf("%s has %d lines FROM IMAGE:TAG@sha256:..., want one", file, len(found))
	}
	return string(found[0][1])
}

// instead are options with which a recipe is built as it stands, from another base and with the wrapper from here.
func instead(tb testing.TB, file, other string) []string {
	tb.Helper()
	return []string{
		"--build-context", pinned(tb, file) + "=container-image://" + other,
		"--build-context", "iptables-wrapper=container-image://" + base(tb, "iptables-wrapper"),
	}
}
