// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// checkFiles checks the sums, the binaries, the licenses, and the list of modules.
func checkFiles(t *testing.T, dist, version string, architectures []string) {
	t.Helper()
	// The list is made again, because --check does not notice a file that is not on it.
	output(t, exec.Command("sh", "-c",
		`cd "$1" && LC_ALL=C ls | grep -vx SHA256SUMS | xargs sha256sum -- | cmp - SHA256SUMS`, "-", dist))
	var want []string
	for _, arch := range architectures {
		name := "iptables-wrapper-linux-" + arch
		want = append(want, name)
		file, err := elf.Open(filepath.Join(dist, name))
		host.Check(t, err)
		if file.Machine != machines[arch] {
			t.Errorf("%s is for %v", name, file.Machine)
		}
		file.Close()
	}
	want = append(want, "LICENSES", "SHA256SUMS", "govulncheck.txt", "iptables-wrapper.cdx.json",
		"iptables-wrapper.openvex.json")
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
	line := output(t, exec.Command(filepath.Join(dist, "iptables-wrapper-linux-"+runtime.GOARCH), "version"))
	if !strings.HasPrefix(line, "iptables-wrapper version "+version+" (") {
		t.Errorf("got %q", line)
	}
	var list struct {
		Metadata   struct{ Component struct{ Version string } }
		Components []struct{ Name, Version string }
	}
	content := host.Read(t, filepath.Join(dist, "iptables-wrapper.cdx.json"))
	if err := json.Unmarshal(content, &list); err != nil || list.Metadata.Component.Version != version {
		t.Errorf("the list of modules is that of version %q (%v)", list.Metadata.Component.Version, err)
	}
	binary := filepath.Join(dist, "iptables-wrapper-linux-amd64")
	info, err := buildinfo.ReadFile(binary)
	host.Check(t, err)
	want = []string{"std " + info.GoVersion}
	licenses := string(host.Read(t, filepath.Join(dist, "LICENSES")))
	for _, module := range linked(t, binary) {
		if !strings.Contains(licenses, "==== "+module.Path+" ====\n") {
			t.Errorf("LICENSES has none of %s", module.Path)
		}
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
