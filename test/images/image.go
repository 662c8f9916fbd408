// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// image is a recipe and what is known of the images that it makes.
type image struct {
	name   string // its row in the table
	recipe string // in images/
	base   string // what stands for its base image here
	dir    string // where its programs are, without links
	// reinstall is what reinstalls its iptables package, "" where no package manager is left or none keeps links.
	reinstall string
	nonroot   bool // its user is not root
	capable   bool // its entry point has the file capabilities of iptables' programs
}

// dpkgReinstall does what "apt-get install --reinstall iptables" does, with a package that has been fetched before.
const dpkgReinstall = "dpkg --install /debs/iptables_*.deb"

var all = []image{
	{name: "debian (bullseye)", recipe: "debian", base: "debian:bullseye", dir: "/usr/sbin", reinstall: dpkgReinstall},
	{name: "debian (bookworm)", recipe: "debian", base: "debian:bookworm", dir: "/usr/sbin", reinstall: dpkgReinstall},
	{name: "debian (trixie)", recipe: "debian", base: "debian:trixie", dir: "/usr/sbin", reinstall: dpkgReinstall},
	{name: "debian (sid)", recipe: "debian", base: "debian:sid", dir: "/usr/sbin", reinstall: dpkgReinstall},
	{name: "ubuntu", recipe: "ubuntu", base: "debian:trixie", dir: "/usr/sbin", reinstall: dpkgReinstall},
	{name: "alpine", recipe: "alpine", base: "busybox:alpine", dir: "/usr/sbin"},
	{name: "alpine (3.19)", recipe: "alpine", base: "busybox:alpine-3.19", dir: "/sbin"},
	{
		name:      "fedora",
		recipe:    "fedora",
		base:      "fedora",
		dir:       "/usr/bin",
		reinstall: "dnf reinstall iptables-nft iptables-legacy",
	},
	{name: "wolfi", recipe: "wolfi", base: "busybox:wolfi", dir: "/usr/bin"},
	{name: "distroless", recipe: "distroless", base: "debian:trixie", dir: "/usr/sbin"},
	{name: "nonroot", recipe: "nonroot", base: "debian:trixie", dir: "/usr/sbin", nonroot: true},
}

func dockerfile(t testing.TB, lines ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	host.Check(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	return dir
}

// built is an image that has been built.
type built struct {
	image
	ref string
}

func (i built) wrapper() string { return i.dir + "/iptables-wrapper" }

func (i built) program(backend string) string { return i.dir + "/xtables-" + backend + "-multi" }

// version is what iptables --version ends with.
func version(backend string) string {
	if backend == "nft" {
		backend = "nf_tables"
	}
	return "(" + backend + ")"
}

// prelude defines what the scripts use: leads prints what the six commands, found in PATH, lead to; version
// prints iptables' backend.
const prelude = `export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
leads() { for n in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
/busybox readlink -f $(/busybox which $n); done | /busybox sort -u; }
version() { iptables --version | /busybox sed 's/.*(/(/'; }
`

const (
	rule1 = "*filter\n-A INPUT -s 192.0.2.1 -j DROP\nCOMMIT\n"
	rule2 = `*filter\n-A INPUT -s 192.0.2.2 -j DROP\nCOMMIT\n`
)

// rights are those that iptables needs, on a host.
func rights(n node, more ...string) []string {
	return append([]string{n.network(), "--cap-drop=all", "--cap-add=NET_ADMIN,NET_RAW"}, more...)
}

func (i built) run(t *testing.T, stdin, script string, options ...string) result {
	t.Helper()
	return start(t, stdin, command(t, runArgs(t, i, script, options...)...))
}

// right checks that a container printed these lines, what the commands lead to, and the version of the backend, and
// nothing else. It returns direct or eachCall.
func (i built) right(t *testing.T, got result, backend string, lines ...string) string {
	t.Helper()
	for word, leads := range map[string]string{direct: i.program(backend), eachCall: i.wrapper()} {
		if got == (result{strings.Join(append(lines, leads, version(backend)), "\n") + "\n", "", 0}) {
			return word
		}
	}
	t.Errorf("want %q, what the commands lead to, and %s; got %+v", lines, version(backend), got)
	return ""
}

// realBase is the base of every recipe, "registry" for the one that the recipe names: test/real/images.sh.
var realBase = os.Getenv("TEST_BASE")

func buildImage(t *testing.T, i image) built {
	t.Helper()
	dir := top + "/images/" + i.recipe
	var args []string
	switch realBase {
	case "":
		args = instead(t, dir+"/Dockerfile", base(t, i.base))
	case "registry":
		args = []string{
			"--pull=missing", "--build-context", "iptables-wrapper=container-image://" + base(t, "iptables-wrapper"),
		}
	default:
		args = instead(t, dir+"/Dockerfile", realBase)
	}
	return built{i, build(t, "test-"+i.tag(), dir, args...)}
}

func (i image) tag() string { return strings.NewReplacer(" (", "-", ")", "").Replace(i.name) }

// plain is Debian with iptables and nothing else.
func plain(t *testing.T) string {
	t.Helper()
	return build(t, "test-plain", dockerfile(t, "FROM "+base(t, "debian:trixie"),
		"RUN apt-get update && apt-get install --yes --no-install-recommends iptables"))
}

var backends = []string{"legacy", "nft"}

// want is the result of an image in a setting on a host.
func (s setting) want(i image, backend string) string {
	word := s.result
	if other := s.except[i.name]; other != "" {
		word = other
	}
	for part := range strings.SplitSeq(word, ", ") {
		if of, found := strings.CutPrefix(part, backend+": "); found {
			return of
		}
	}
	return word
}

// inRegistry says whether a setting can be played with the base that a recipe names. Each recipe names one, and
// reinstalling takes a package that is fetched for Debian only.
func (i image) inRegistry(s setting) bool {
	named := i.name == i.recipe || i.name == "debian (trixie)"
	return named && (i.recipe == "debian" || i.reinstall == "" || s.name != "iptables reinstalled")
}

// label says of an image that is built on a stand-in that only the layout is that of the distribution.
func (i image) label() string {
	if strings.HasPrefix(i.base, "debian:") && i.recipe != "ubuntu" {
		return i.name
	}
	return i.name + " layout"
}
