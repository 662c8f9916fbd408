// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package release makes a release, twice, and uses what is in it as a user would.
package release

import (
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
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
	manual := host.Run(t, "tar", "-xOf", filepath.Join(dist, "iptables-wrapper-linux-amd64.tar.gz"), "iptables-wrapper-linux-amd64/iptables-wrapper.8")
	for _, want := range []string{`8 2026-11-21 "` + newest(t) + `"`, "iptables\\-wrapper \\- run the iptables backend", `"IPTABLES\-WRAPPER SELECT"`, `\-\-wait DURATION`} {
		if !strings.Contains(manual, want) {
			t.Errorf("the manual page lacks %q:\n%s", want, manual)
		}
	}
	push := exec.Command("release/push.sh", newest(t)) // to where no image can be
	push.Dir = filepath.Dir(dist)
	push.Env = append(os.Environ(), "PODMAN="+strings.Join(podmanCommand(t, storage).Args, " "), "REGISTRY=localhost/Upper")
	out, err := push.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "lowercase") {
		t.Errorf("%v\n%s", err, out)
	}
	// The last image has a name that another release may have given it.
	if left := output(t, podmanCommand(t, storage, "images", "--all", "--noheading", "--format", "{{.Repository}}:{{.Tag}}")); left != "localhost/kept:latest" {
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
		"GOPROXY=file://" + strings.TrimSpace(cache) + "/cache/download," + strings.TrimSpace(host.Run(t, "go", "env", "GOPROXY")),
		"GONOSUMDB=*",
		"GOAMD64=v3",
	}
}

// publishAsUser publishes as somebody who is not root, in a checkout where root ran the tests and "make release": root owns all but
// dist/.
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
		cmd.Path = "/usr/bin/setpriv"
		cmd.Args = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, cmd.Args...)
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
		podman("import", "--quiet", "--os", "linux", "--arch", arch, debianBase(t, arch), "localhost/debian:trixie-"+arch)
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
		checkFiles(t, dist, slices.Sorted(maps.Keys(machines)), "iptables-wrapper.oci.tar", "iptables-wrapper-distroless.oci.tar",
			"iptables-wrapper-distroless-linux-amd64.cdx.json", "iptables-wrapper-distroless-linux-arm64.cdx.json")
	})
	t.Run("image", func(t *testing.T) {
		if got := platformsOf(t, dist, "iptables-wrapper"); len(got) != len(machines) {
			t.Errorf("it is for %q", got)
		}
		wrapper = checkImage(t, dist, podman)
	})
	t.Run("distroless", func(t *testing.T) {
		if got := platformsOf(t, dist, "iptables-wrapper-distroless"); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
			t.Errorf("it is for %q", got)
		}
		for _, arch := range []string{"amd64", "arm64"} {
			ref := podman("pull", "--quiet", "--arch", arch, "oci-archive:"+filepath.Join(dist, "iptables-wrapper-distroless.oci.tar"))
			if got := slices.Sorted(maps.Keys(labels(t, podman, ref))); !slices.Equal(got, slices.Sorted(maps.Keys(wrapper))) {
				t.Errorf("the images have other labels: %q and %q", got, wrapper)
			}
			var list struct{ Components []struct{ Purl string } }
			content, err := os.ReadFile(filepath.Join(dist, "iptables-wrapper-distroless-linux-"+arch+".cdx.json"))
			host.Check(t, cmp.Or(err, json.Unmarshal(content, &list)))
			if !regexp.MustCompile(`pkg:deb/debian/iptables@1\.8\.\S+\?arch=` + arch + `&distro=debian-13`).MatchString(fmt.Sprint(list)) {
				t.Errorf("the SBOM has no iptables: %s", content)
			}
			run := func(args ...string) string {
				t.Helper()
				return podman(slices.Concat([]string{"run", "--rm", "--network=none"}, host.Ulimits, args)...)
			}
			if got := run(ref, "version"); !strings.HasPrefix(got, "iptables-wrapper version "+newest(t)+" (") {
				t.Errorf("%s: got %q", arch, got)
			}
			if got := run("--entrypoint", "/usr/sbin/iptables", ref, "--version"); !regexp.MustCompile(`^iptables v1\.\S+ \((legacy|nf_tables)\)$`).MatchString(got) {
				t.Errorf("%s: got %q", arch, got)
			}
		}
	})
	t.Run("publish", func(t *testing.T) {
		images := map[string]int{"iptables-wrapper": len(machines), "iptables-wrapper-distroless": 2}
		publish(t, filepath.Dir(dist), images, environment, func(cmd *exec.Cmd) *exec.Cmd { return host.Emulated(t, cmd) })
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

// checkFiles checks the sums, the binaries, what is in the tarballs, and the list of modules.
func checkFiles(t *testing.T, dist string, architectures []string, images ...string) {
	t.Helper()
	// The list is made again, because --check does not notice a file that is not on it.
	output(t, exec.Command("sh", "-c", `cd "$1" && LC_ALL=C ls | grep -vx SHA256SUMS | xargs sha256sum -- | cmp - SHA256SUMS`, "-", dist))
	var want []string
	for _, arch := range architectures {
		name := "iptables-wrapper-linux-" + arch
		want = append(want, name, name+".tar.gz")
		file, err := elf.Open(filepath.Join(dist, name))
		host.Check(t, err)
		if file.Machine != machines[arch] {
			t.Errorf("%s is for %v", name, file.Machine)
		}
		file.Close()
		got := strings.Fields(output(t, exec.Command("tar", "-tf", filepath.Join(dist, name+".tar.gz"))))
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], name+"/")
		}
		contents := []string{"", "LICENSE", "iptables-wrapper", "iptables-wrapper.8", "licenses/", "licenses/go"}
		for _, module := range linked(t, filepath.Join(dist, name)) {
			contents = append(contents, "licenses/"+strings.ReplaceAll(module.Path, "/", "-"))
		}
		slices.Sort(contents)
		if !slices.Equal(got, contents) {
			t.Errorf("%s.tar.gz has %q, want %q", name, got, contents)
		}
	}
	want = append(append(want, "SHA256SUMS", "iptables-wrapper.cdx.json"), images...)
	slices.Sort(want)
	var got []string
	entries, err := os.ReadDir(dist)
	host.Check(t, err)
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("dist/ has %q, want %q", got, want)
	}
	if got := output(t, exec.Command(filepath.Join(dist, "iptables-wrapper-linux-"+runtime.GOARCH), "version")); !strings.HasPrefix(got, "iptables-wrapper version "+newest(t)+" (") {
		t.Errorf("got %q", got)
	}
	var list struct {
		Metadata   struct{ Component struct{ Version string } }
		Components []struct{ Name, Version string }
	}
	content := host.Read(t, filepath.Join(dist, "iptables-wrapper.cdx.json"))
	if err := json.Unmarshal(content, &list); err != nil || list.Metadata.Component.Version != newest(t) {
		t.Errorf("the list of modules is that of version %q (%v)", list.Metadata.Component.Version, err)
	}
	binary := filepath.Join(dist, "iptables-wrapper-linux-amd64")
	info, err := buildinfo.ReadFile(binary)
	host.Check(t, err)
	want = []string{"std " + info.GoVersion}
	for _, module := range linked(t, binary) {
		want = append(want, module.Path+" "+module.Version)
	}
	got = nil
	for _, component := range list.Components {
		got = append(got, component.Name+" "+component.Version)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the list of modules has %q, and the binary %q", got, want)
	}
}

// linked returns the modules of which a program says that they are linked into it.
func linked(t *testing.T, program string) []*debug.Module {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	host.Check(t, err)
	if len(info.Deps) < 2 {
		t.Fatalf("%s has %d modules", program, len(info.Deps))
	}
	return info.Deps
}

// labels are those of the images in dist/.
func labels(t *testing.T, podman func(...string) string, ref string) (all map[string]string) {
	t.Helper()
	host.Check(t, json.Unmarshal([]byte(podman("image", "inspect", "--format", "{{json .Labels}}", ref)), &all))
	delete(all, "io.buildah.version")
	if all["org.opencontainers.image.version"] != newest(t) || len(all["org.opencontainers.image.revision"]) != 40 {
		t.Errorf("%s has the labels %q", ref, all)
	}
	return all
}

// checkImage takes the wrapper out of the arm64 image. That the program runs there is shown by the distroless image.
func checkImage(t *testing.T, dist string, podman func(...string) string) map[string]string {
	t.Helper()
	ref := podman("pull", "--quiet", "--arch", "arm64", "oci-archive:"+filepath.Join(dist, "iptables-wrapper.oci.tar"))
	id := podman("create", ref)
	defer podman("rm", id)
	wrapper := filepath.Join(t.TempDir(), "iptables-wrapper")
	podman("cp", id+":/iptables-wrapper", wrapper)
	output(t, exec.Command("cmp", wrapper, filepath.Join(dist, "iptables-wrapper-linux-arm64")))
	return labels(t, podman, ref)
}
