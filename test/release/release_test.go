// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package release makes a release, twice, and uses what is in it as a user would.
package release

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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
	dist := release(t, func(dir string, again bool) *exec.Cmd {
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
	checkFiles(t, dist, []string{"amd64", "arm64"}, "iptables-wrapper.oci.tar")
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
	publishAsUser(t, filepath.Dir(dist), map[string]int{"iptables-wrapper": len(platforms)})
}

// elsewhere is the environment of another machine: its modules are somewhere else, its tar and gzip of a version that
// writes other bytes (none at all would do), and its Go builds for newer processors.
func elsewhere(t *testing.T) []string {
	t.Helper()
	cache := host.Run(t, "go", "env", "GOMODCACHE")
	bin := t.TempDir()
	for _, program := range []string{"tar", "gzip"} {
		script := "#!/bin/sh\necho $0 was called >&2\nexit 1\n"
		host.Check(t, os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755))
	}
	return []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"),
		"GOMODCACHE=" + t.TempDir(),
		"GOFLAGS=-modcacherw",
		"GOPROXY=file://" + strings.TrimSpace(cache) + "/cache/download," +
			strings.TrimSpace(host.Run(t, "go", "env", "GOPROXY")),
		"GONOSUMDB=*",
		"GOAMD64=v3",
	}
}

// publishAsUser publishes as somebody who is not root, in a checkout where root ran the tests and "make release": root
// owns all but dist/.
func publishAsUser(t *testing.T, dir string, images map[string]int) {
	t.Helper()
	host.Check(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	host.Check(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755))
	home := t.TempDir()
	host.Check(t, os.Chmod(filepath.Dir(home), 0o755))
	host.Check(t, os.Chown(home, 65534, 65534))
	environment := append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home, "TMPDIR="+home,
		"PODMAN="+strings.Join(host.Podman(home+"/storage", home+"/run").Args, " ")+" --storage-driver vfs")
	publish(t, dir, images, environment, func(cmd *exec.Cmd) *exec.Cmd {
		// Podman leaves a process behind for its user namespace. It ends with this PID namespace.
		cmd.Path = "/usr/bin/unshare"
		cmd.Args = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
			"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, cmd.Args...)
		return cmd
	})
}

// A whole release. The distroless image for arm64 is built and run under qemu-user.
func TestRelease(t *testing.T) {
	if !host.All() {
		t.Skip("takes minutes: make test-all runs it")
	}
	if os.Geteuid() != 0 {
		host.Cannot(t, "run containers: run it as root")
	}
	if runtime.GOARCH != "amd64" {
		host.Cannot(t, "emulate arm64 on %s", runtime.GOARCH)
	}
	storage := host.Storage(t)
	podman := func(args ...string) string {
		t.Helper()
		return output(t, host.Emulated(t, podmanCommand(t, storage, args...)))
	}
	for _, arch := range []string{"amd64", "arm64"} {
		podman("import", "--quiet", "--os", "linux", "--arch", arch, debianBase(t, arch),
			"localhost/debian:trixie-"+arch)
	}
	environment := append(os.Environ(), "BASE=localhost/debian:trixie-{arch}",
		"PODMAN="+strings.Join(podmanCommand(t, storage).Args, " "),
		"PODMAN_BUILD="+strings.Join(append([]string{"--pull=never", "--network=host"}, host.Ulimits...), " "))
	dist := release(t, func(dir string, again bool) *exec.Cmd {
		cmd := exec.Command("make", "release", "VERSION="+newest(t))
		cmd.Dir, cmd.Env = dir, environment
		if again && !host.Nightly() {
			cmd.Env = append(environment, "DISTROLESS=") // takes minutes under qemu-user, and is what Debian has today
		}
		return host.Emulated(t, cmd)
	})

	var wrapper map[string]string // its image's labels
	t.Run("files", func(t *testing.T) {
		checkFiles(t, dist, slices.Sorted(maps.Keys(machines)), "iptables-wrapper.oci.tar",
			"iptables-wrapper-distroless.oci.tar",
			"iptables-wrapper-distroless-linux-amd64.cdx.json", "iptables-wrapper-distroless-linux-arm64.cdx.json")
	})
	t.Run("image", func(t *testing.T) {
		if got := platformsOf(t, dist, "iptables-wrapper"); len(got) != len(machines) {
			t.Errorf("it is for %q", got)
		}
		wrapper = checkImage(t, dist, podman)
	})
	t.Run("distroless", func(t *testing.T) {
		got := platformsOf(t, dist, "iptables-wrapper-distroless")
		if !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
			t.Errorf("it is for %q", got)
		}
		for _, arch := range []string{"amd64", "arm64"} {
			ref := podman("pull", "--quiet", "--arch", arch,
				"oci-archive:"+filepath.Join(dist, "iptables-wrapper-distroless.oci.tar"))
			got := slices.Sorted(maps.Keys(labels(t, podman, ref)))
			if !slices.Equal(got, slices.Sorted(maps.Keys(wrapper))) {
				t.Errorf("the images have other labels: %q and %q", got, wrapper)
			}
			var list struct{ Components []struct{ Purl string } }
			content, err := os.ReadFile(filepath.Join(dist, "iptables-wrapper-distroless-linux-"+arch+".cdx.json"))
			host.Check(t, cmp.Or(err, json.Unmarshal(content, &list)))
			iptables := regexp.MustCompile(`pkg:deb/debian/iptables@1\.8\.\S+\?arch=` + arch + `&distro=debian-13`)
			if !iptables.MatchString(fmt.Sprint(list)) {
				t.Errorf("the SBOM has no iptables: %s", content)
			}
			run := func(args ...string) string {
				t.Helper()
				return podman(slices.Concat([]string{"run", "--rm", "--network=none"}, host.Ulimits, args)...)
			}
			if got := run(ref, "version"); !strings.HasPrefix(got, "iptables-wrapper version "+newest(t)+" (") {
				t.Errorf("%s: got %q", arch, got)
			}
			line := run("--entrypoint", "/usr/sbin/iptables", ref, "--version")
			if !regexp.MustCompile(`^iptables v1\.\S+ \((legacy|nf_tables)\)$`).MatchString(line) {
				t.Errorf("%s: got %q", arch, line)
			}
		}
	})
	t.Run("publish", func(t *testing.T) {
		images := map[string]int{"iptables-wrapper": len(machines), "iptables-wrapper-distroless": 2}
		publish(t, filepath.Dir(dist), images, environment,
			func(cmd *exec.Cmd) *exec.Cmd { return host.Emulated(t, cmd) })
	})
}

// release makes a release twice, in different directories, and returns dist/ of the first. What both have is the same.
func release(t *testing.T, command func(dir string, again bool) *exec.Cmd) string {
	t.Helper()
	var dist, sums [2]string
	dirs := []string{checkout(t, "a"), checkout(t, "another/directory")} // now, in case somebody edits a file
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
