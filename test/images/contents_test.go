// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The image is the wrapper, its licenses, and labels. test/release looks at the binaries for all platforms.
func TestOwnImage(t *testing.T) {
	ref := build(t, "own", top, goArgs(t)...)
	files := contents(t, ref)
	if names := sortedKeys(files); !slices.Equal(names, []string{
		"LICENSES", "iptables-wrapper",
	}) {
		t.Errorf("it has %q", names)
	}
	want := host.Run(t, top+"/release/source.sh") // there is no git in the build
	got := podman(t, append(append([]string{"run", "--rm"}, host.Ulimits...), ref, "version")...)
	if !strings.Contains(got, strings.TrimSpace(want)) {
		t.Errorf("its version is %q, want %s", got, want)
	}
	var image []struct{ Labels map[string]string }
	host.Check(t, json.Unmarshal([]byte(podman(t, "image", "inspect", ref)), &image))
	for label, want := range map[string]string{
		"licenses": "Apache-2.0", "title": ".", "description": ".", "source": ".", "documentation": ".",
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
		files[header.Name], err = io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func sortedKeys(files map[string][]byte) []string {
	var names []string
	for name := range files {
		// podman's
		if !strings.HasPrefix(name, "etc/") && !strings.HasPrefix(name, "run/") && !strings.HasPrefix(name, "dev/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Every base image is pinned by digest. No line needs what docker's classic builder and podman 4.3 do not have:
// platforms of the builder, and stages that arguments name.
func TestPinned(t *testing.T) {
	files, err := filepath.Glob(top + "/images/*/Dockerfile")
	host.Check(t, err)
	for _, file := range append(files, top+"/Dockerfile") {
		known := []string{"scratch", "iptables-wrapper"}
		bases := 0
		for line := range strings.Lines(string(host.Read(t, file))) {
			from, isFrom := strings.CutPrefix(strings.TrimSpace(line), "FROM ")
			if !isFrom {
				continue
			}
			switch {
			case pinnedLine.MatchString("FROM " + from):
				bases++
			case !slices.Contains(known, strings.Fields(from)[0]):
				t.Errorf("%s: %q is not pinned", file, line)
			}
			if _, stage, found := strings.Cut(from, " AS "); found {
				known = append(known, stage)
			}
		}
		if bases == 0 {
			t.Errorf("%s: no line FROM IMAGE:TAG@sha256:...", file)
		}
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(.*)$`).FindSubmatch(host.Read(t, top+"/go.mod"))
	if toolchain == nil || !bytes.Contains(host.Read(t, top+"/Dockerfile"),
		append([]byte("/golang:"), toolchain[1]...)) {
		t.Errorf("the Dockerfile does not build with go.mod's toolchain %s", toolchain)
	}
}

// distrolessRules need extensions of both families, the names of protocols, services and hosts, and what other
// libraries know.
const distrolessRules = `*filter
-A INPUT -p tcp --dport http -j DROP
-A INPUT -p udp -m multiport --dports 53,ntp -m comment --comment "a b" -j RETURN
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -m recent --name r --set -j ACCEPT
-A INPUT -m statistic --mode random --probability 0.5 -j ACCEPT
-A INPUT -m addrtype --dst-type LOCAL -m mark --mark 0x1/0x1 -j ACCEPT
-A OUTPUT -p ipcomp -m owner --uid-owner root -j REJECT
COMMIT
*nat
-A POSTROUTING -j MASQUERADE --random-fully
-A PREROUTING -p tcp -j REDIRECT --to-ports 1
COMMIT
*mangle
-A PREROUTING -p tcp -j TPROXY --on-port 1 --tproxy-mark 1
-A POSTROUTING -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
COMMIT
*raw
-A PREROUTING -m rpfilter --invert -j DROP
-A PREROUTING -j CT --notrack
COMMIT
`

// The image has all that the package has, loads it, and tells scanners what it is.
func TestDistroless(t *testing.T) {
	i := buildImage(t, named(t, "distroless"))
	files, whole := contents(t, i.ref), contents(t, plain(t))
	extensions := 0
	for name := range whole {
		if strings.Contains(name, "/xtables/") {
			extensions++
			if files[name] == nil {
				t.Errorf("%s is not there", name)
			}
		}
	}
	if extensions < 100 {
		t.Errorf("Debian's package has %d extensions", extensions)
	}
	for _, name := range []string{
		"etc/debian_version", "usr/lib/os-release", "etc/protocols", "etc/services", "etc/ethertypes",
		"usr/share/common-licenses/GPL-2", "usr/share/doc/iptables-wrapper/copyright",
	} {
		if len(files[name]) == 0 {
			t.Errorf("%s is not there", name)
		}
	}
	packages := 0
	for name, status := range files {
		if path.Dir(name) != "var/lib/dpkg/status.d" {
			continue
		}
		packages++
		if !strings.HasPrefix(string(status), "Package: "+path.Base(name)+"\n") ||
			!strings.Contains(string(status), "\nVersion: ") {
			t.Errorf("%s: %.60q", name, status)
		}
		if len(files["usr/share/doc/"+path.Base(name)+"/copyright"]) == 0 {
			t.Errorf("%s has no license", name)
		}
	}
	for _, name := range []string{"iptables", "libc6", "libxtables12", "libnftnl11", "libmnl0", "libip4tc2",
		"libip6tc2", "netbase", "base-files"} {
		if files["var/lib/dpkg/status.d/"+name] == nil {
			t.Errorf("package %s is not in the list", name)
		}
	}
	if packages > 20 {
		t.Errorf("%d packages", packages)
	}

	for _, backend := range backends {
		for _, family := range []string{"iptables", "ip6tables"} {
			got := i.run(t, distrolessRules, family+"-restore && "+family+"-save | /busybox grep -c ^-A",
				rights(newNode(t, backend))...)
			if want := (result{"13\n", "", 0}); got != want {
				t.Errorf("%s %s: got %+v", backend, family, got)
			}
		}
	}
}
