// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	{name: "fedora", recipe: "fedora", base: "fedora", dir: "/usr/bin", reinstall: "dnf reinstall iptables-nft iptables-legacy"},
	{name: "wolfi", recipe: "wolfi", base: "busybox:wolfi", dir: "/usr/bin"},
	{name: "distroless", recipe: "distroless", base: "debian:trixie", dir: "/usr/sbin"},
	{name: "nonroot", recipe: "nonroot", base: "debian:trixie", dir: "/usr/sbin", nonroot: true},
}

// setting is a way to run an image on a host of a mode. Its test returns the result, in one of the words of the table; a
// result that is always wrong is an error of the test.
type setting struct {
	name string
	test func(t *testing.T, i built, mode string) string
}

// The words of the table. The first two are right answers.
const (
	direct    = "direct"    // the first call goes by the host's mode, and later ones bypass the wrapper
	eachCall  = "each call" // each call goes by the host's mode
	guess     = "guess"     // nothing can be read: the call is made with a guess, and nothing is kept
	notKept   = "not kept"  // what was called in a build has decided nothing
	kept      = "kept"      // the names still point to the wrapper
	newOne    = "new: direct, same: after reset"
	noStart   = "no start" // the kernel does not start it
	isRefused = "refused"  // it starts, and iptables says that it is not permitted
	healthy   = "healthy"  // doctor finds nothing that is wrong
	none      = "—"
)

var settings = []setting{
	{"first call is a restore", firstCall},
	{"20 first calls at once", atOnce},
	{"read-only root", readOnly},
	{"`drop: [ALL]`", noCapability},
	{"NET_ADMIN alone", onlyNetAdmin},
	{"no privilege escalation", noEscalation},
	{"the same, entry point with file capabilities", capableEntryPoint},
	{"user 65532", asUser("65532:65532")},
	{"user 65532, group 0", asUser("65532:0")},
	{"user namespace", userNamespace},
	{"called during a build", inBuild},
	{"iptables reinstalled", reinstalled},
	{"host changes its mode", hostChanges},
	{"two modes on one kernel", twoModes},
	{"`doctor`", doctor},
}

// The first call is a restore from standard input. It loads where the host's rules are.
func firstCall(t *testing.T, i built, mode string) string {
	got := i.run(t, rule1, "iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; leads; version",
		rights(newNode(t, mode))...)
	return i.right(t, got, mode, "1")
}

// Half of them by full path.
func atOnce(t *testing.T, i built, mode string) string {
	got := i.run(t, "", `for j in 1 2 3 4 5 6 7 8 9 10; do
iptables -w -A INPUT -s 192.0.2.$j -j DROP & `+i.dir+`/iptables -w -A INPUT -s 192.0.2.1$j -j DROP &
done; wait; iptables -S INPUT | /busybox grep -c 192.0.2; leads; version`, rights(newNode(t, mode))...)
	return i.right(t, got, mode, "20")
}

// No place can be written to, as in Kubernetes. The lock is the host's, except for the images that bring one.
func readOnly(t *testing.T, i built, mode string) string {
	options := rights(newNode(t, mode), "--read-only", "--read-only-tmpfs=false")
	if !i.nonroot && i.recipe != "distroless" {
		options = append(options, "--volume", lock(t, 0o600))
	}
	got := i.run(t, rule1, `iptables-restore --noflush; printf '`+rule2+`' | `+i.dir+`/iptables-restore --noflush
iptables -S INPUT | /busybox grep -c 192.0.2; leads; version`, options...)
	return i.right(t, got, mode, "2")
}

func lock(t *testing.T, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "xtables.lock")
	if err := os.WriteFile(path, nil, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path + ":/run/xtables.lock"
}

// Nothing can be read, so nothing is decided, and iptables itself says what it lacks.
func noCapability(t *testing.T, i built, mode string) string {
	got := i.run(t, "", "iptables --version >/dev/null || exit; iptables -S; echo $?; leads",
		newNode(t, mode).network(), "--cap-drop=all")
	lines := strings.Split(got.stdout, "\n")
	switch {
	case got.status == 126 && strings.Contains(got.stderr, "Operation not permitted"):
		return noStart
	case len(lines) == 3 && (lines[0] == "3" || lines[0] == "4") && lines[1] == i.wrapper() && strings.Contains(got.stderr, "Permission denied"):
		return guess
	}
	t.Errorf("got %+v", got)
	return ""
}

// Legacy's programs need NET_RAW too. The wrapper does not.
func onlyNetAdmin(t *testing.T, i built, mode string) string {
	got := i.run(t, "", "iptables --version >/dev/null || exit; leads; version",
		newNode(t, mode).network(), "--cap-drop=all", "--cap-add=NET_ADMIN")
	if got.status == 126 && strings.Contains(got.stderr, "Operation not permitted") {
		return noStart
	}
	return i.right(t, got, mode)
}

// As allowPrivilegeEscalation: false has it.
func noEscalation(t *testing.T, i built, mode string) string {
	got := i.run(t, "", "iptables -S >/dev/null || exit; leads; version", rights(newNode(t, mode), "--security-opt=no-new-privileges")...)
	if got.status == 4 && strings.Contains(got.stderr, "you must be root") {
		return isRefused
	}
	return i.right(t, got, mode)
}

// As linkerd runs its init container: not root, group 0, and the capabilities are on the files alone, the entry point's
// included. The wrapper's file must have them too, or the programs would lose them on the way.
func capableEntryPoint(t *testing.T, i built, mode string) string {
	if !i.nonroot {
		return none
	}
	i.capable = true
	options := func(n node) []string { return rights(n, "--user", "65534:0", "--security-opt=no-new-privileges") }
	got := i.run(t, rule1, `iptables-restore --noflush; iptables -w -S INPUT | /busybox grep -c 192.0.2.1
IPTABLES_WRAPPER_MODE=`+other(mode)+` iptables --version | /busybox sed 's/.*(/(/'; leads; version`, options(newNode(t, mode))...)
	word := i.right(t, got, mode, "1", version(other(mode)))

	// Nothing is there, so the first rule is a guess. It is remembered, whatever comes into the other backend then.
	got = i.run(t, "", `iptables -w -A INPUT -j DROP
for j in 1 2 3 4 5; do `+i.program("legacy")+` iptables -w -A INPUT -s 192.0.2.$j -j DROP; done
iptables -w -S INPUT | /busybox grep -c DROP; leads; version`, options(bareNode(t))...)
	i.right(t, got, "nft", "1")
	return word
}

// Another user. Where the image's files bring no capabilities, the container's first process has them, as podman gives
// them to it.
func asUser(user string) func(t *testing.T, i built, mode string) string {
	return func(t *testing.T, i built, mode string) string {
		got := i.run(t, "", "iptables -w -S >/dev/null; leads; version", rights(newNode(t, mode), "--user", user, "--volume", lock(t, 0o666))...)
		if want := i.wrapper() + "\n" + version("nft") + "\n"; mode == "legacy" && got == (result{want, "", 0}) {
			return guess
		}
		return i.right(t, got, mode)
	}
}

// The network namespace belongs to the user namespace, as podman makes it for users other than root.
func userNamespace(t *testing.T, i built, mode string) string {
	got := i.run(t, rule1, i.program(mode)+` iptables -t mangle -N KUBE-IPTABLES-HINT
iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; leads; version`,
		"--network=none", "--uidmap=0:100000:65536", "--gidmap=0:100000:65536", "--cap-drop=all", "--cap-add=NET_ADMIN,NET_RAW")
	return i.right(t, got, mode, "1")
}

// The build's RUN lines see a host that has the evidence.
func inBuild(t *testing.T, i built, mode string) string {
	n := newNode(t, mode)
	dir := dockerfile(t, "FROM "+i.ref, fmt.Sprintf(`RUN ["%s/iptables", "--version"]`, i.dir))
	cmd := command(t, append(append([]string{"build", "--no-cache", "--quiet", "--pull=never", "--network", "host"}, ulimits...), dir)...)
	cmd.Path, cmd.Args = "/usr/bin/nsenter", append([]string{"nsenter", "--net=/run/netns/" + n.name}, cmd.Args...)
	got := start(t, "", cmd)
	if strings.Contains(strings.ToLower(got.stderr), "operation not permitted") {
		return noStart
	}
	if got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	after := run(t, strings.TrimSpace(got.stdout), "", "leads", n.network())
	if after != (result{i.wrapper() + "\n", "", 0}) {
		t.Errorf("after the build: %+v", after)
	}
	return notKept
}

func dockerfile(t testing.TB, lines ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What the package manager does to its links leaves the wrapper where it is, and it still works.
func reinstalled(t *testing.T, i built, mode string) string {
	if i.reinstall == "" {
		return none
	}
	name := "reinstalled-" + i.tag()
	lines := []string{"FROM " + i.ref, "USER 0", "RUN " + i.reinstall}
	if suite, ok := strings.CutPrefix(i.base, "debian:"); ok {
		lines = slices.Insert(lines, 1, "COPY --from="+base(t, "debs:"+suite)+" /debs /debs")
	}
	i.ref = build(t, name, dockerfile(t, lines...))
	got := i.run(t, "", "leads; iptables -S >/dev/null; leads; version", rights(newNode(t, mode))...)
	i.right(t, got, mode, i.wrapper())
	return kept
}

// The container is started again: a new one from the image, as Kubernetes does it, and the same one.
func hostChanges(t *testing.T, i built, mode string) string {
	n := newNode(t, mode)
	script := "version"
	if !i.nonroot {
		script = "version; iptables-wrapper reset >/dev/null; version; iptables-wrapper reset >/dev/null; iptables -S >/dev/null; leads"
	}
	create := append([]string{"create"}, runArgs(t, i, script, rights(n)...)[2:]...)
	id := podman(t, create...)
	t.Cleanup(func() { podman(t, "rm", "--force", "--time", "0", id) })
	again := func() string {
		got := start(t, "", command(t, "start", "--attach", id))
		if got.status != 0 || got.stderr != "" {
			t.Errorf("got %+v", got)
		}
		return got.stdout
	}
	lines := func(modes ...string) (s string) {
		for _, m := range modes {
			s += version(m) + "\n"
		}
		return s
	}
	first := again()
	n.feed(t, "", "ip6tables-"+mode, "-t", "mangle", "-X", "KUBE-IPTABLES-HINT")
	n.feed(t, "", "ip6tables-"+other(mode), "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	second := again()
	i.right(t, i.run(t, "", "iptables -S >/dev/null; leads; version", rights(n)...), other(mode))
	switch {
	case i.nonroot && first == lines(mode) && second == lines(other(mode)):
		return eachCall
	case first == lines(mode, mode)+i.program(mode)+"\n" && second == lines(mode, other(mode))+i.program(other(mode))+"\n":
		return newOne
	}
	t.Errorf("first %q, then %q", first, second)
	return ""
}

// Both at the same time, from one image.
func twoModes(t *testing.T, i built, mode string) string {
	var words [2]string
	var both sync.WaitGroup
	for j, m := range []string{mode, other(mode)} {
		n := newNode(t, m)
		both.Go(func() {
			words[j] = i.right(t, i.run(t, "", "iptables -S >/dev/null; leads; version", rights(n)...), m)
		})
	}
	both.Wait()
	if words[0] != words[1] {
		t.Errorf("%q and %q", words[0], words[1])
	}
	return words[0]
}

// What doctor says of the container on a host where it works. The host has stray rules, which it must report.
func doctor(t *testing.T, i built, mode string) string {
	got := i.run(t, "", "iptables-wrapper doctor", rights(newNode(t, mode))...)
	said := strings.Join(strings.Fields(got.stdout), " ") // its lines are broken for a terminal
	if got.status != 0 || got.stderr != "" || !strings.Contains(said, "result: found 1 warning;") ||
		!strings.HasPrefix(said, "WARNING the other backend has rules too: 20 in "+other(mode)+" ipv4 filter. ") {
		t.Errorf("got %+v", got)
		return ""
	}
	return healthy
}

// built is an image that has been built.
type built struct {
	image
	ref string
}

func (i built) wrapper() string            { return i.dir + "/iptables-wrapper" }
func (i built) program(mode string) string { return i.dir + "/xtables-" + mode + "-multi" }

// version is what iptables --version ends with.
func version(mode string) string {
	if mode == "nft" {
		mode = "nf_tables"
	}
	return "(" + mode + ")"
}

// prelude defines what the scripts use: leads prints what the six names, found in PATH, point to in the end; version prints
// iptables' backend.
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

// right checks that a container printed these lines, what the names point to, and the version of the mode, and nothing
// else. It returns direct or eachCall.
func (i built) right(t *testing.T, got result, mode string, lines ...string) string {
	t.Helper()
	for word, leads := range map[string]string{direct: i.program(mode), eachCall: i.wrapper()} {
		if got == (result{strings.Join(append(lines, leads, version(mode)), "\n") + "\n", "", 0}) {
			return word
		}
	}
	t.Errorf("want %q, what the names point to, and %s; got %+v", lines, version(mode), got)
	return ""
}

func buildImage(t *testing.T, i image) built {
	t.Helper()
	args := []string{"--build-arg", "BASE=" + base(t, i.base), "--build-arg", "WRAPPER=" + base(t, "iptables-wrapper")}
	return built{i, build(t, "test-"+i.tag(), top+"/images/"+i.recipe, args...)}
}

func (i image) tag() string { return strings.NewReplacer(" (", "-", ")", "").Replace(i.name) }

// TestImages builds every image, runs it in every setting, and compares the result with the table in
// docs/evidence/images.md; with -update it writes that. In "make nightly" and with -update, that is on hosts of both modes.
// Otherwise each setting has one mode, another one with the next image; and "make test" takes one image.
func TestImages(t *testing.T) {
	words := make([][]string, len(all))
	sizes := make([][3]string, len(all))
	both := host.Nightly() || *update
	t.Run("each", func(t *testing.T) {
		for row, i := range all {
			if !host.All() && !*update && i.name != "debian (trixie)" {
				continue
			}
			words[row] = make([]string, len(settings))
			t.Run(i.name, func(t *testing.T) {
				t.Parallel()
				b := buildImage(t, i)
				sizes[row] = measure(t, b)
				for column, s := range settings {
					got := map[string]string{}
					for m, mode := range modes {
						if both || m == (row+column)%2 {
							t.Run(s.name+"/"+mode, func(t *testing.T) { got[mode] = s.test(t, b, mode) })
						}
					}
					words[row][column] = cell(got)
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	compare(t, words, sizes)
}
