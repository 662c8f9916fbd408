// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

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
	host.Check(t, os.WriteFile(recorder, []byte("#!/bin/sh\necho \"$*\" >>"+calls+"\n"), 0o755))
	cmd := exec.Command("make", "publish", "VERSION="+version)
	cmd.Dir = dir
	cmd.Env = append(environment, "REGISTRY="+address, "PUSH_OPTIONS=--tls-verify=false", "COSIGN="+recorder+" cosign", "GH="+recorder+" gh")
	output(t, host.Emulated(t, cmd))
	recorded := host.Read(t, calls)
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

// serveRegistry starts a registry and returns its address.
func serveRegistry(t *testing.T, crane string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	host.Check(t, err)
	address := free.Addr().String()
	free.Close()
	cmd := exec.Command(crane, "registry", "serve", "--address", address)
	host.Check(t, cmd.Start())
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
