// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The image is the wrapper, its licences, and labels. test/release looks at the binaries for all platforms.
func TestOwnImage(t *testing.T) {
	wantAll(t)
	ref := build(t, "own", top, append(goArgs(t), "--build-arg", "VERSION=v0.0.0-test", "--build-arg", "REVISION=abc",
		// Debian 12's podman does not know it by itself.
		"--build-arg", "BUILDPLATFORM=linux/"+runtime.GOARCH)...)
	files := contents(t, ref)
	if names := sortedKeys(files); !slices.Equal(names, []string{
		"LICENSE", "iptables-wrapper", "licenses/github.com-urfave-cli-v2", "licenses/go", "licenses/golang.org-x-sys",
	}) {
		t.Errorf("it has %q", names)
	}
	if !bytes.Contains(files["iptables-wrapper"], []byte("v0.0.0-test")) {
		t.Error("it does not know its version")
	}
	var image []struct{ Labels map[string]string }
	host.Check(t, json.Unmarshal([]byte(podman(t, "image", "inspect", ref)), &image))
	for label, want := range map[string]string{
		"licenses": "Apache-2.0", "version": "v0.0.0-test", "revision": "abc", "title": ".", "description": ".", "source": ".", "documentation": ".",
	} {
		if got := image[0].Labels["org.opencontainers.image."+label]; got == "" || want != "." && got != want {
			t.Errorf("label %s: got %q, want %q", label, got, want)
		}
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
		host.Check(t, err)
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

// Every base image is pinned, and the Go that builds the image is the one in go.mod.
func TestPinned(t *testing.T) {
	recipes, err := filepath.Glob(top + "/images/*/Dockerfile")
	if err != nil || len(recipes) != 8 {
		t.Fatalf("%v, %v", recipes, err)
	}
	for _, path := range append(recipes, top+"/Dockerfile") {
		if !regexp.MustCompile(`(?m)^ARG (BASE|ALPINE|GO_IMAGE)=[^ ]+@sha256:[0-9a-f]{64}$`).Match(host.Read(t, path)) {
			t.Errorf("%s: its base is not pinned", path)
		}
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(.*)$`).FindSubmatch(host.Read(t, top+"/go.mod"))
	if toolchain == nil || !bytes.Contains(host.Read(t, top+"/Dockerfile"), append([]byte("/golang:"), toolchain[1]...)) {
		t.Errorf("the Dockerfile does not build with go.mod's toolchain %s", toolchain)
	}
}
