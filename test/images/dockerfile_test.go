// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// platforms are those that the Dockerfile at the top builds for.
var platforms = map[string]struct {
	class   elf.Class
	data    elf.Data
	machine elf.Machine
}{
	"linux/amd64":   {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_X86_64},
	"linux/arm64":   {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_AARCH64},
	"linux/arm/v7":  {elf.ELFCLASS32, elf.ELFDATA2LSB, elf.EM_ARM},
	"linux/ppc64le": {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_PPC64},
	"linux/s390x":   {elf.ELFCLASS64, elf.ELFDATA2MSB, elf.EM_S390},
	"linux/riscv64": {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_RISCV},
	"linux/386":     {elf.ELFCLASS32, elf.ELFDATA2LSB, elf.EM_386},
}

// The image is the static wrapper for each platform, its licence, and labels.
func TestPlatforms(t *testing.T) {
	wantAll(t)
	for platform, want := range platforms {
		t.Run(platform, func(t *testing.T) {
			ref := build(t, "platform-"+strings.ReplaceAll(strings.TrimPrefix(platform, "linux/"), "/", "-"), top,
				append(goArgs(t), "--platform", platform, "--build-arg", "VERSION=v0.0.0-test", "--build-arg", "REVISION=abc",
					// Debian 12's podman does not know it by itself.
					"--build-arg", "BUILDPLATFORM=linux/"+runtime.GOARCH)...)
			files := contents(t, ref)
			if names := sortedKeys(files); !slices.Equal(names, []string{
				"LICENSE", "iptables-wrapper", "licenses/github.com-urfave-cli-v2", "licenses/go", "licenses/golang.org-x-sys",
			}) {
				t.Errorf("it has %q", names)
			}
			program, err := elf.NewFile(bytes.NewReader(files["iptables-wrapper"]))
			if err != nil {
				t.Fatal(err)
			}
			if program.Class != want.class || program.Data != want.data || program.Machine != want.machine {
				t.Errorf("got %v %v %v, want %v", program.Class, program.Data, program.Machine, want)
			}
			if !bytes.Contains(files["iptables-wrapper"], []byte("v0.0.0-test")) {
				t.Error("it does not know its version")
			}
			var image []struct {
				Os, Architecture string
				Labels           map[string]string
			}
			if err := json.Unmarshal([]byte(podman(t, "image", "inspect", ref)), &image); err != nil {
				t.Fatal(err)
			}
			if got, _, _ := strings.Cut(strings.TrimPrefix(platform, "linux/"), "/"); image[0].Architecture != got || image[0].Os != "linux" {
				t.Errorf("it says it is for %s/%s", image[0].Os, image[0].Architecture)
			}
			for label, want := range map[string]string{"licenses": "Apache-2.0", "version": "v0.0.0-test", "revision": "abc"} {
				if got := image[0].Labels["org.opencontainers.image."+label]; got != want {
					t.Errorf("label %s: got %q, want %q", label, got, want)
				}
			}
			for _, label := range []string{"title", "description", "source", "documentation"} {
				if image[0].Labels["org.opencontainers.image."+label] == "" {
					t.Errorf("no label %s", label)
				}
			}
		})
	}
}

// contents returns the files of an image.
func contents(t *testing.T, ref string) map[string][]byte {
	t.Helper()
	id := podman(t, "create", ref, "-")
	t.Cleanup(func() { podman(t, "rm", id) })
	files := map[string][]byte{}
	for r := tar.NewReader(strings.NewReader(podman(t, "export", id))); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func sortedKeys(files map[string][]byte) []string {
	var names []string
	for name := range files {
		if !strings.HasPrefix(name, "etc/") && !strings.HasPrefix(name, "run/") && !strings.HasPrefix(name, "dev/") { // podman's
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// The same source gives the same image, to the last byte, also where nothing has been compiled before. Without arguments,
// the version is that of the changelog.
func TestReproducibleImage(t *testing.T) {
	if !host.Nightly() {
		t.Skip("the release is built twice in make test; make nightly compiles everything again, too")
	}
	var ids [2]string
	for i := range ids {
		args := goArgs(t)
		if i == 1 {
			args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasSuffix(arg, ":/root/.cache/go-build") })
		}
		ref := build(t, "reproducible", top, append(args, "--no-cache")...)
		ids[i] = podman(t, "image", "inspect", "--format", "{{.Id}}", ref)
	}
	if ids[0] != ids[1] {
		t.Errorf("two builds differ: %s and %s", ids[0], ids[1])
	}
	changelog, err := os.ReadFile(top + "/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## \[(v.*)\]`).FindSubmatch(changelog)
	got := podman(t, slices.Concat([]string{"run", "--rm", "--network", "none"}, ulimits, []string{ids[0], "version"})...)
	if want := "iptables-wrapper version " + string(newest[1]) + "+source"; strings.TrimSpace(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Every base image is pinned, and the Go that builds the image is the one in go.mod.
func TestPinned(t *testing.T) {
	recipes, err := filepath.Glob(top + "/images/*/Dockerfile")
	if err != nil || len(recipes) != 8 {
		t.Fatalf("%v, %v", recipes, err)
	}
	for _, path := range append(recipes, top+"/Dockerfile") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^ARG (BASE|ALPINE|GO_IMAGE)=[^ ]+@sha256:[0-9a-f]{64}$`).Match(text) {
			t.Errorf("%s: its base is not pinned", path)
		}
	}
	text, err := os.ReadFile(top + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(top + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(.*)$`).FindSubmatch(module)
	if toolchain == nil || !bytes.Contains(text, append([]byte("/golang:"), toolchain[1]...)) {
		t.Errorf("the Dockerfile does not build with go.mod's toolchain %s", toolchain)
	}
}
