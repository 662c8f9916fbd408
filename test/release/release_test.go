// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package release makes a release, twice, and uses what is in it as a user would.
package release

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
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

const version = "v1.0.0-rc.1"

// machines are the ELF machines of the platforms, by the ends of the binaries' names.
var machines = map[string]elf.Machine{
	"386": elf.EM_386, "amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "armv7": elf.EM_ARM, "ppc64le": elf.EM_PPC64,
	"riscv64": elf.EM_RISCV, "s390x": elf.EM_S390,
}

func TestRelease(t *testing.T) {
	if !host.All() {
		t.Skip("takes minutes: make test-all runs it")
	}
	if os.Geteuid() != 0 {
		host.Cannot(t, "run containers: run it as root")
	}
	base := debianBase(t)
	first, second := checkout(t, "a"), checkout(t, "another/directory")
	environment := append(os.Environ(), "BASE="+base, "DISTROLESS=linux/"+runtime.GOARCH,
		"PODMAN="+strings.Join(podmanCommand(t).Args, " "),
		"PODMAN_BUILD=--pull=never --network host --ulimit nofile=20000:20000 --ulimit nproc=4096:4096")
	for _, dir := range []string{first, second} {
		cmd := exec.Command("make", "release", "VERSION="+version)
		cmd.Dir, cmd.Env = dir, environment
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	dist := filepath.Join(first, "dist")

	t.Run("reproducible", func(t *testing.T) {
		var sums [2]string
		for i, dir := range []string{first, second} {
			content, err := os.ReadFile(filepath.Join(dir, "dist/SHA256SUMS"))
			if err != nil {
				t.Fatal(err)
			}
			sums[i] = string(content)
		}
		if sums[0] != sums[1] {
			t.Errorf("two releases of the same source:\n%s\n%s", sums[0], sums[1])
		}
	})
	t.Run("files", func(t *testing.T) { checkFiles(t, dist) })
	t.Run("image", func(t *testing.T) { checkImage(t, dist) })
	t.Run("distroless", func(t *testing.T) {
		ref := podman(t, "pull", "--quiet", "oci-archive:"+filepath.Join(dist, "iptables-wrapper-distroless.oci.tar"))
		got := podman(t, "run", "--rm", "--ulimit", "nofile=20000:20000", "--ulimit", "nproc=4096:4096", "--network", "none", ref, "version")
		if got != "iptables-wrapper version "+version {
			t.Errorf("got %q", got)
		}
	})
	t.Run("publish", func(t *testing.T) { publish(t, first, environment) })
}

// checkFiles checks the sums, the binaries, what is in the tarballs, and the list of modules.
func checkFiles(t *testing.T, dist string) {
	output(t, exec.Command("sh", "-c", `cd "$1" && sha256sum --quiet --check SHA256SUMS`, "-", dist))
	var want []string
	for arch, machine := range machines {
		name := "iptables-wrapper-linux-" + arch
		want = append(want, name, name+".tar.gz")
		file, err := elf.Open(filepath.Join(dist, name))
		if err != nil {
			t.Fatal(err)
		}
		if file.Machine != machine {
			t.Errorf("%s is for %v", name, file.Machine)
		}
		file.Close()
		got := strings.Fields(output(t, exec.Command("tar", "-tf", filepath.Join(dist, name+".tar.gz"))))
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], name+"/")
		}
		if contents := []string{"", "LICENSE", "iptables-wrapper", "licenses/", "licenses/github.com-urfave-cli-v2", "licenses/go", "licenses/golang.org-x-sys"}; !slices.Equal(got, contents) {
			t.Errorf("%s.tar.gz has %q", name, got)
		}
	}
	want = append(want, "SHA256SUMS", "iptables-wrapper.cdx.json", "iptables-wrapper.oci.tar", "iptables-wrapper-distroless.oci.tar")
	slices.Sort(want)
	var got []string
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("dist/ has %q, want %q", got, want)
	}
	if got := output(t, exec.Command(filepath.Join(dist, "iptables-wrapper-linux-"+runtime.GOARCH), "version")); got != "iptables-wrapper version "+version {
		t.Errorf("got %q", got)
	}
	var list struct {
		Metadata struct{ Component struct{ Version string } }
	}
	content, err := os.ReadFile(filepath.Join(dist, "iptables-wrapper.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &list); err != nil || list.Metadata.Component.Version != version {
		t.Errorf("the list of modules is that of version %q (%v)", list.Metadata.Component.Version, err)
	}
}

// checkImage takes the wrapper out of the arm64 image, installs it among Debian's programs for arm64, and calls iptables.
// The kernel starts these by qemu-user, which is registered in a user namespace of its own. qemu-user passes on no netlink
// message of netfilter, so the answer is a guess.
func checkImage(t *testing.T, dist string) {
	ref := podman(t, "pull", "--quiet", "--arch", "arm64", "oci-archive:"+filepath.Join(dist, "iptables-wrapper.oci.tar"))
	if got := podman(t, "image", "inspect", "--format", `{{.Architecture}} {{index .Labels "org.opencontainers.image.version"}}`, ref); got != "arm64 "+version {
		t.Errorf("the image is for %s", got)
	}
	id := podman(t, "create", ref)
	defer podman(t, "rm", id)
	wrapper := fileOf(t, podman(t, "export", id), "iptables-wrapper")
	released, err := os.ReadFile(filepath.Join(dist, "iptables-wrapper-linux-arm64"))
	if err != nil || !bytes.Equal(wrapper, released) {
		t.Errorf("the image holds another program than the release (%v)", err)
	}

	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		host.Cannot(t, "emulate arm64: %v", err)
	}
	root := arm64Root(t)
	if err := os.WriteFile(filepath.Join(root, "usr/sbin/iptables-wrapper"), wrapper, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "sh", "-euc", `
mkdir -p "$1/mnt" "$1/proc"
mount -t binfmt_misc none "$1/mnt"
printf '%s' ":arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$2:FPOC" >"$1/mnt/register"
mount -t proc none "$1/proc"
chroot "$1" /usr/sbin/iptables-wrapper version
chroot "$1" /usr/sbin/iptables-wrapper install
chroot "$1" /usr/sbin/iptables --version
`, "-", root, emulator)
	got := output(t, cmd)
	if !regexp.MustCompile(`(?s)^iptables-wrapper version ` + regexp.QuoteMeta(version) + `\n.*/usr/sbin/iptables .*\niptables v1\.\S+ \((legacy|nf_tables)\)$`).MatchString(got) {
		t.Errorf("got %s", got)
	}
}

// publish pushes the images to a registry and takes them from there. What signs and what talks to GitHub is replaced by
// programs that write down how they were called.
func publish(t *testing.T, dir string, environment []string) {
	const crane = "github.com/google/go-containerregistry/cmd/crane@v0.22.1"
	bin := filepath.Join(t.TempDir(), "crane")
	build := exec.Command("go", "install", crane)
	build.Env = append(os.Environ(), "GOBIN="+filepath.Dir(bin), "GOFLAGS=")
	output(t, build)
	address := serveRegistry(t, bin)
	calls := filepath.Join(t.TempDir(), "calls")
	recorder := filepath.Join(t.TempDir(), "recorder")
	if err := os.WriteFile(recorder, []byte("#!/bin/sh\necho \"$*\" >>"+calls+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", "publish", "VERSION="+version)
	cmd.Dir = dir
	cmd.Env = append(environment, "REGISTRY="+address, "PUSH_OPTIONS=--tls-verify=false", "COSIGN="+recorder+" cosign", "GH="+recorder+" gh")
	output(t, cmd)
	recorded, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^cosign sign --yes \S+/iptables-wrapper@sha256:\S+
cosign sign --yes \S+/iptables-wrapper-distroless@sha256:\S+
cosign sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS
gh release create v1.0.0-rc.1 --verify-tag .*--prerelease dist/\S+ .*
$`)
	if !want.Match(recorded) {
		t.Errorf("got calls\n%s", recorded)
	}
	var index struct {
		Manifests []struct{ Platform struct{ Architecture string } }
	}
	manifest := output(t, exec.Command(bin, "manifest", "--insecure", address+"/iptables-wrapper:"+version))
	if err := json.Unmarshal([]byte(manifest), &index); err != nil || len(index.Manifests) != len(machines) {
		t.Errorf("the registry has %s (%v)", manifest, err)
	}
}

// A binary reports a version, whatever it was built from.
func TestVersions(t *testing.T) {
	if !host.All() {
		t.Skip("takes minutes: make test-all runs it")
	}
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
	// As an image is built: the Dockerfile copies no repository.
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

// fileOf returns a file of a tar archive.
func fileOf(t *testing.T, archive, name string) []byte {
	t.Helper()
	for r := tar.NewReader(strings.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("there is no %s in it", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == name {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return content
		}
	}
}
