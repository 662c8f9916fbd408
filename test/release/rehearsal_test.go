// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
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

// The next release, from the commit to the last step that needs GitHub, as docs/releasing.md and the release workflow
// make it. A user who is not root makes the commit and the tag, tests and builds with sudo, and publishes to a
// registry. From there, the images are pulled and run, arm64's under qemu-user.
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
	version := nextRelease(newest(t))
	dirs := tagged(t, version)
	testCommit(t, dirs[0])

	storage := host.Storage(t)
	podman := func(args ...string) string {
		t.Helper()
		return output(t, host.Emulated(t, podmanCommand(t, storage, args...)))
	}
	for _, arch := range []string{"amd64", "arm64"} {
		podman("import", "--quiet", "--os", "linux", "--arch", arch, debianBase(t, arch),
			"localhost/debian:trixie-"+arch)
	}
	environment := append(underSudo(), "BASE=localhost/debian:trixie-{arch}",
		"PODMAN="+strings.Join(podmanCommand(t, storage).Args, " "),
		"PODMAN_BUILD="+strings.Join(append([]string{"--pull=never", "--network=host"}, host.Ulimits...), " "))
	dist := release(t, dirs, func(dir string, again bool) *exec.Cmd {
		cmd := exec.Command("make", "release", "VERSION="+version)
		cmd.Dir, cmd.Env = dir, environment
		if again && !host.Nightly() {
			cmd.Env = append(environment, "DISTROLESS=") // takes minutes under qemu-user, and is what Debian has today
		}
		return host.Emulated(t, cmd)
	})
	checkFiles(t, dist, version, slices.Sorted(maps.Keys(machines)), "iptables-wrapper.oci.tar",
		"iptables-wrapper-distroless.oci.tar",
		"iptables-wrapper-distroless-linux-amd64.cdx.json", "iptables-wrapper-distroless-linux-arm64.cdx.json")
	if got := platformsOf(t, dist, "iptables-wrapper"); len(got) != len(machines) {
		t.Errorf("the wrapper's image is for %q", got)
	}
	got := platformsOf(t, dist, "iptables-wrapper-distroless")
	if !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the distroless image is for %q", got)
	}

	registry := publish(t, dirs[0], version,
		map[string]int{"iptables-wrapper": len(machines), "iptables-wrapper-distroless": 2})
	pull := func(arch, name string) string {
		t.Helper()
		return podman("pull", "--quiet", "--tls-verify=false", "--arch", arch,
			registry.address()+"/"+name+":"+version)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			wrapper, distroless := pull(arch, "iptables-wrapper"), pull(arch, "iptables-wrapper-distroless")
			checkWrapper(t, filepath.Join(dist, "iptables-wrapper-linux-"+arch), podman, wrapper)
			got := slices.Sorted(maps.Keys(labels(t, podman, distroless, version)))
			if want := slices.Sorted(maps.Keys(labels(t, podman, wrapper, version))); !slices.Equal(got, want) {
				t.Errorf("the images have other labels: %q and %q", got, want)
			}
			checkDistroless(t, podman, distroless, version)
			checkPackages(t, filepath.Join(dist, "iptables-wrapper-distroless-linux-"+arch+".cdx.json"), arch)
		})
	}
}

// tagged makes the commit and the tag of a release, as docs/releasing.md says it, and returns two fresh clones of them.
// All belongs to user.
func tagged(t *testing.T, version string) (clones []string) {
	t.Helper()
	source := checkout(t, "source")
	work := filepath.Dir(source)
	letIn(t, source)
	host.Run(t, "chown", "-R", fmt.Sprint(user, ":", user), work)
	script := strings.Join([]string{
		"git clone --quiet --bare source origin.git && git clone --quiet origin.git maintainer && cd maintainer",
		aFix,
		commandsOf(t, "Before the tag"),
		"git push --quiet origin main",
		strings.ReplaceAll(commandsOf(t, "The tag"), " --sign ", " "), // for want of a key
		"cd .. && git clone --quiet origin.git a && git clone --quiet origin.git another/directory",
	}, "\n")
	cmd := exec.Command("sh", "-euc", strings.ReplaceAll(script, "VERSION", version))
	cmd.Dir, cmd.Env = work, append(os.Environ(), committer...)
	output(t, asUser(cmd))
	return []string{filepath.Join(work, "a"), filepath.Join(work, "another/directory")}
}

// underSudo is the environment of root if user called sudo.
func underSudo() []string {
	return append(os.Environ(), fmt.Sprint("SUDO_UID=", user), fmt.Sprint("SUDO_GID=", user), "SUDO_USER=nobody")
}

// testCommit does what "sudo make test" does in a checkout, as far as the version is of importance.
func testCommit(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{
		{"build"},
		{"test-packages", "PACKAGES=./test/release"},
		{"test-packages", "PACKAGES=./test -run TestLibraryPage"},
	} {
		cmd := exec.Command("make", append(args, "TEST_ALL=")...)
		cmd.Dir, cmd.Env = dir, append(underSudo(), "TEST_ALL=")
		t.Log(output(t, cmd))
	}
}

// checkWrapper compares the program in the wrapper's image with one that can be downloaded.
func checkWrapper(t *testing.T, program string, podman func(...string) string, ref string) {
	t.Helper()
	id := podman("create", ref)
	defer podman("rm", id)
	wrapper := filepath.Join(t.TempDir(), "iptables-wrapper")
	podman("cp", id+":/iptables-wrapper", wrapper)
	output(t, exec.Command("cmp", wrapper, program))
}

// checkDistroless runs the wrapper in the distroless image, by both names.
func checkDistroless(t *testing.T, podman func(...string) string, ref, version string) {
	t.Helper()
	run := func(args ...string) string {
		t.Helper()
		return podman(slices.Concat([]string{"run", "--rm", "--network=none"}, host.Ulimits, args)...)
	}
	if got := run(ref, "version"); !strings.HasPrefix(got, "iptables-wrapper version "+version+" (") {
		t.Errorf("got %q", got)
	}
	line := run("--entrypoint", "/usr/sbin/iptables", ref, "--version")
	if !regexp.MustCompile(`^iptables v1\.\S+ \((legacy|nf_tables)\)$`).MatchString(line) {
		t.Errorf("got %q", line)
	}
}

// checkPackages reads the list of what is in the distroless image.
func checkPackages(t *testing.T, file, arch string) {
	t.Helper()
	var list struct{ Components []struct{ Purl string } }
	content, err := os.ReadFile(file)
	host.Check(t, cmp.Or(err, json.Unmarshal(content, &list)))
	iptables := regexp.MustCompile(`pkg:deb/debian/iptables@1\.8\.\S+\?arch=` + arch + `&distro=debian-13`)
	if !iptables.MatchString(fmt.Sprint(list)) {
		t.Errorf("the SBOM has no iptables: %s", content)
	}
}

// labels are those of an image, which must say where it comes from.
func labels(t *testing.T, podman func(...string) string, ref, version string) (all map[string]string) {
	t.Helper()
	host.Check(t, json.Unmarshal([]byte(podman("image", "inspect", "--format", "{{json .Labels}}", ref)), &all))
	delete(all, "io.buildah.version")
	if all["org.opencontainers.image.version"] != version || len(all["org.opencontainers.image.revision"]) != 40 {
		t.Errorf("%s has the labels %q", ref, all)
	}
	return all
}
