// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package release makes a release, twice, and uses what is in it as a user would.
package release

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// machines are the ELF machines of the platforms, by the ends of the binaries' names.
var machines = map[string]elf.Machine{
	"386": elf.EM_386, "amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "armv7": elf.EM_ARM, "ppc64le": elf.EM_PPC64,
	"riscv64": elf.EM_RISCV, "s390x": elf.EM_S390,
}

// A release with two platforms, without the image whose packages come from the network. Who may read
// the checkout does not matter, nor does the umask.
func TestSmallRelease(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		host.Cannot(t, "run containers: run it as root")
	}
	platforms := []string{"linux/amd64", "linux/arm64"}
	storage := host.Storage(t) // not the one of test/images: podman cannot list images beside a manifest list
	newer, err := filepath.Abs("testdata/podman-5.8")
	host.Check(t, err)
	// Not by make, which would install what the other platforms need.
	dirs := []string{checkout(t, "a"), checkout(t, "another/directory")} // now, in case somebody edits a file
	dist := release(t, dirs, func(dir string, again bool) *exec.Cmd {
		cmd := exec.Command("release/build.sh", newest(t))
		environment := os.Environ()
		if again {
			cmd = exec.Command("sh", "-c", `chmod -R go= . && umask 077 && exec release/build.sh "$0"`, newest(t))
			environment = append(environment, elsewhere(t)...)
		}
		cmd.Dir = dir
		cmd.Env = append(environment,
			"PODMAN="+newer+" "+strings.Join(podmanCommand(t, storage).Args, " "),
			"PODMAN_BUILD=--tag localhost/kept",
			"PLATFORMS="+strings.Join(platforms, " "),
			"DISTROLESS=",
			"SOURCE_DATE_EPOCH=0", // as in a package's build, and of no importance
			"SUDO_UID=65534",
		)
		return cmd
	})
	checkFiles(t, dist, newest(t), []string{"amd64", "arm64"}, "iptables-wrapper.oci.tar")
	manual := host.Run(t, "tar", "-xOf", filepath.Join(dist, "iptables-wrapper-linux-amd64.tar.gz"),
		"iptables-wrapper-linux-amd64/iptables-wrapper.8")
	for _, want := range []string{`8 2026-11-21 "` + newest(t) + `"`, "iptables\\-wrapper \\- run the iptables backend",
		`"IPTABLES\-WRAPPER SELECT"`, `\-\-wait DURATION`} {
		if !strings.Contains(manual, want) {
			t.Errorf("the manual page lacks %q:\n%s", want, manual)
		}
	}
	push := exec.Command("release/push.sh", newest(t)) // to where no image can be
	push.Dir = filepath.Dir(dist)
	push.Env = append(os.Environ(), "PODMAN="+strings.Join(podmanCommand(t, storage).Args, " "),
		"REGISTRY=localhost/Upper")
	out, err := push.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "lowercase") {
		t.Errorf("%v\n%s", err, out)
	}
	// The last image has a name that another release may have given it.
	left := output(t, podmanCommand(t, storage, "images", "--all", "--noheading", "--format",
		"{{.Repository}}:{{.Tag}}"))
	if left != "localhost/kept:latest" {
		t.Errorf("podman has the images %q", left)
	}
	if got := platformsOf(t, dist, "iptables-wrapper"); !slices.Equal(got, platforms) {
		t.Errorf("the image is for %q", got)
	}
	publish(t, filepath.Dir(dist), newest(t), map[string]int{"iptables-wrapper": len(platforms)})
}

// elsewhere is the environment of another machine: its modules are somewhere else, its tar and gzip of a version that
// writes other bytes (none at all would do), and its Go builds for newer processors.
func elsewhere(t *testing.T) []string {
	t.Helper()
	modules := filepath.Join(t.TempDir(), "modules")
	cache := strings.TrimSpace(host.Run(t, "go", "env", "GOMODCACHE"))
	host.Check(t, os.Symlink(cache, modules)) // to unpack them all there takes longer than the release itself
	bin := t.TempDir()
	for _, program := range []string{"tar", "gzip"} {
		script := "#!/bin/sh\necho $0 was called >&2\nexit 1\n"
		host.Check(t, os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755))
	}
	return []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"),
		"GOMODCACHE=" + modules,
		"GOAMD64=v3",
	}
}

// release makes a release in two checkouts of one commit, and returns dist/ of the first. What both have is the same.
func release(t *testing.T, dirs []string, command func(dir string, again bool) *exec.Cmd) string {
	t.Helper()
	var dist, sums [2]string
	for i, dir := range dirs {
		output(t, command(dir, i > 0))
		dist[i] = filepath.Join(dir, "dist")
		content := host.Read(t, filepath.Join(dist[i], "SHA256SUMS"))
		sums[i] = string(content)
	}
	if !strings.Contains(sums[1], "distroless") { // not made again
		sums[0] = regexp.MustCompile(`(?m)^.*distroless.*\n`).ReplaceAllString(sums[0], "")
	}
	if sums[0] != sums[1] {
		t.Errorf("two releases of the same source:\n%s\n%s", sums[0], sums[1])
	}
	return dist[0]
}
