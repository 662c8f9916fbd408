// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const recipes = top + "/examples/packages/"

// melange is what examples/packages/melange.yaml uses of melange's format, and no more: a misspelt field is an error.
type melange struct {
	Package struct {
		Name, Version, Description string
		Epoch                      int
		Copyright                  []struct{ License string }
		Dependencies               struct{ Runtime, Replaces []string }
	}
	Environment struct{ Contents struct{ Packages []string } }
	Pipeline    []step
	Test        struct{ Pipeline []step }
	Update      struct {
		Enabled bool
		Github  struct {
			Identifier  string
			UseTag      bool   `json:"use-tag"`
			StripPrefix string `json:"strip-prefix"`
		}
	}
}

type step struct {
	Uses, Runs       string
	With             map[string]string
	WorkingDirectory string `json:"working-directory"`
}

func readMelange(t *testing.T) (m melange) {
	t.Helper()
	host.Check(t, yaml.UnmarshalStrict(host.Read(t, recipes+"melange.yaml"), &m))
	if m.Package.Name != "iptables-wrapper" || m.Package.Copyright[0].License != "Apache-2.0" ||
		m.Pipeline[0].Uses != "git-checkout" || m.Pipeline[0].With["tag"] != "v${{package.version}}" ||
		!m.Update.Enabled || len(m.Test.Pipeline) == 0 {
		t.Fatalf("it has %+v", m)
	}
	return m
}

// packaged is an image of a layout, with its packages of iptables and the files of another package over them.
func packaged(t *testing.T, name, layout, packages, files string) string {
	t.Helper()
	dir := dockerfile(t, "FROM "+base(t, layout), "RUN apk add "+packages, "COPY files/ /")
	host.Check(t, os.Rename(files, filepath.Join(dir, "files")))
	return build(t, "packaged-"+name, dir)
}

// The steps of the recipe for Wolfi make a package, and its own test is content with it.
func TestMelange(t *testing.T) {
	t.Parallel()
	m := readMelange(t)
	work := t.TempDir()
	source, files := filepath.Join(work, "source"), filepath.Join(work, "files")
	host.Check(t, host.Sources(top, source))
	variables := strings.NewReplacer("${{package.version}}", m.Package.Version, "${{targets.contextdir}}", files)
	for _, s := range m.Pipeline[1:] {
		cmd := exec.Command("sh", "-euc", variables.Replace(s.Runs))
		cmd.Dir = source
		if s.WorkingDirectory != "" {
			cmd.Dir = variables.Replace(s.WorkingDirectory)
		}
		host.Output(t, cmd)
	}
	ref := packaged(t, "wolfi", "busybox:wolfi", "iptables ip6tables", files)
	for _, s := range m.Test.Pipeline {
		args := append([]string{"run", "--rm", "--entrypoint", "sh"}, host.Ulimits...)
		cmd := command(t, append(args, ref, "-euc", variables.Replace(s.Runs))...)
		if got := start(t, "", cmd); got.status != 0 {
			t.Errorf("its test: %+v", got)
		}
	}
	checkPackaged(t, built{image{dir: "/usr/bin"}, ref})
}

// The functions of the recipe for Alpine make a package.
func TestAPKBUILD(t *testing.T) {
	t.Parallel()
	host.Needs(t, "shellcheck")
	// Variables are abuild's; there is no shebang.
	host.Run(t, "shellcheck", "--shell=dash", "--exclude=SC2034,SC2148,SC2154", recipes+"APKBUILD")
	version := regexp.MustCompile(`(?m)^pkgver=(.*)$`).FindSubmatch(host.Read(t, recipes+"APKBUILD"))
	work := t.TempDir()
	host.Check(t, host.Sources(top, filepath.Join(work, "src/iptables-wrappers-"+string(version[1]))))
	path, err := filepath.Abs(recipes + "APKBUILD")
	host.Check(t, err)
	host.Run(t, "sh", "-euc", `srcdir=$1/src pkgdir=$1/files
. "$2"
for field in "$pkgname" "$pkgrel" "$pkgdesc" "$url" "$arch" "$license" "$depends" "$makedepends" "$source"; do
	test "$field"
done
cd "$builddir"
build
check
package`, "-", work, path)
	ref := packaged(t, "alpine", "busybox:alpine", "iptables iptables-legacy", filepath.Join(work, "files"))
	checkPackaged(t, built{image{dir: "/usr/sbin"}, ref})
}

// checkPackaged makes the package's first call a restore, on hosts of both backends.
func checkPackaged(t *testing.T, i built) {
	t.Helper()
	for _, backend := range backends {
		n := newNode(t, backend)
		script := "iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; leads; version"
		i.right(t, i.run(t, rule1, script, rights(n)...), backend, "1")
		n.feed(t, "", "iptables-"+backend, "-C", "INPUT", "-s", "192.0.2.1", "-j", "DROP")
	}
}

// Both recipes name the version that the pages name.
func TestRecipeVersions(t *testing.T) {
	m := readMelange(t)
	page := regexp.MustCompile(`releases/download/v([^/]*)/`).FindSubmatch(host.Read(t, top+"/docs/install.md"))
	named := regexp.MustCompile(`(?m)^pkgver=(.*)$`).FindSubmatch(host.Read(t, recipes+"APKBUILD"))
	if string(page[1]) != m.Package.Version || string(page[1]) != string(named[1]) {
		t.Errorf("docs/install.md has %s, melange.yaml %s, APKBUILD %s", page[1], m.Package.Version, named[1])
	}
}
