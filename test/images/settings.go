// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// setting is a way to run an image on a host. Its test returns the result, in one of the words of the table;
// a result that is always wrong is an error of the test.
type setting struct {
	name   string
	test   func(t *testing.T, i built, backend string) string
	result string            // on hosts of both backends, or "legacy: RESULT, nft: RESULT"
	except map[string]string // of some images
}

// The words of the table. The first two are right answers.
const (
	direct     = "direct"         // the first call goes by the host's backend, and later ones bypass the wrapper
	eachCall   = "each call"      // each call goes by the host's backend
	guess      = "guess"          // nothing can be read: the call is made with a guess, and nothing is kept
	notKept    = "stores nothing" // a call during the build has decided nothing
	kept       = "still wrapped"  // the names still point to the wrapper
	newOne     = "new: direct, same: after reset"
	noStart    = "no start"    // the kernel does not start it
	isRefused  = "refused"     // it starts, and iptables says that it is not permitted
	strayRules = "stray rules" // doctor finds those of the host's other backend, and nothing else
	none       = "—"
)

var (
	nonrootCalls = map[string]string{"nonroot": eachCall}
	nonrootNot   = map[string]string{"nonroot": noStart}
)

var settings = []setting{
	{"first call is a restore", firstCall, direct, nonrootCalls},
	{"20 first calls at once", atOnce, direct, nonrootCalls},
	{"read-only root", readOnly, eachCall, nil},
	{"`drop: [ALL]`", noCapability, guess, nonrootNot},
	{"only NET_ADMIN", onlyNetAdmin, direct, nonrootNot},
	{"no privilege escalation", noEscalation, direct, map[string]string{"nonroot": isRefused}},
	{"the same, entry point with file capabilities", capableEntryPoint, none, nonrootCalls},
	{"user 65532", asUser("65532:65532"), "legacy: " + guess + ", nft: " + eachCall, nil},
	{"user 65532, group 0", asUser("65532:0"), eachCall, nil},
	{"user namespace", userNamespace, direct, nonrootCalls},
	{"called during a build", inBuild, notKept, nonrootNot},
	{"iptables reinstalled", reinstalled, kept, map[string]string{"alpine": none, "alpine (3.19)": none, "wolfi": none,
		"distroless": none, "nonroot": none}},
	{"host changes its backend", hostChanges, newOne, nonrootCalls},
	{"two backends on one kernel", twoBackends, direct, nonrootCalls},
	{"`doctor`", doctor, strayRules, nil},
}

// The first call is a restore from standard input. It loads where the host's rules are.
func firstCall(t *testing.T, i built, backend string) string {
	got := i.run(t, rule1, "iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; leads; version",
		rights(newNode(t, backend))...)
	return i.right(t, got, backend, "1")
}

// Half of them by full path.
func atOnce(t *testing.T, i built, backend string) string {
	got := i.run(t, "", `for j in 1 2 3 4 5 6 7 8 9 10; do
iptables -w -A INPUT -s 192.0.2.$j -j DROP & `+i.dir+`/iptables -w -A INPUT -s 192.0.2.1$j -j DROP &
done; wait; iptables -S INPUT | /busybox grep -c 192.0.2; leads; version`, rights(newNode(t, backend))...)
	return i.right(t, got, backend, "20")
}

// No place can be written to, as in Kubernetes. The lock is the host's, except for the images that bring one.
func readOnly(t *testing.T, i built, backend string) string {
	options := rights(newNode(t, backend), "--read-only", "--read-only-tmpfs=false")
	if !i.nonroot && i.recipe != "distroless" {
		options = append(options, "--volume", lock(t, 0o600))
	}
	got := i.run(t, rule1, `iptables-restore --noflush; printf '`+rule2+`' | `+i.dir+`/iptables-restore --noflush
iptables -S INPUT | /busybox grep -c 192.0.2; leads; version`, options...)
	return i.right(t, got, backend, "2")
}

func lock(t *testing.T, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "xtables.lock")
	host.Check(t, os.WriteFile(path, nil, mode))
	host.Check(t, os.Chmod(path, mode))
	return path + ":/run/xtables.lock"
}

// Nothing can be read, so nothing is decided, and iptables itself says what it lacks.
func noCapability(t *testing.T, i built, backend string) string {
	got := i.run(t, "", "iptables --version >/dev/null || exit; iptables -S; echo $?; leads",
		newNode(t, backend).network(), "--cap-drop=all")
	lines := strings.Split(got.stdout, "\n")
	switch {
	case got.status == 126 && strings.Contains(got.stderr, "Operation not permitted"):
		return noStart
	case len(lines) == 3 && (lines[0] == "3" || lines[0] == "4") && lines[1] == i.wrapper() &&
		strings.Contains(got.stderr, "Permission denied"):
		return guess
	}
	t.Errorf("got %+v", got)
	return ""
}

// Legacy's programs need NET_RAW too. The wrapper does not.
func onlyNetAdmin(t *testing.T, i built, backend string) string {
	got := i.run(t, "", "iptables --version >/dev/null || exit; leads; version",
		newNode(t, backend).network(), "--cap-drop=all", "--cap-add=NET_ADMIN")
	if got.status == 126 && strings.Contains(got.stderr, "Operation not permitted") {
		return noStart
	}
	return i.right(t, got, backend)
}

// As allowPrivilegeEscalation: false has it.
func noEscalation(t *testing.T, i built, backend string) string {
	got := i.run(t, "", "iptables -S >/dev/null || exit; leads; version",
		rights(newNode(t, backend), "--security-opt=no-new-privileges")...)
	if got.status == 4 && strings.Contains(got.stderr, "you must be root") {
		return isRefused
	}
	return i.right(t, got, backend)
}

// As linkerd runs its init container: not root, group 0, and the capabilities are on the files alone, the entry point's
// included. The wrapper's file must have them too, or the programs would lose them on the way.
func capableEntryPoint(t *testing.T, i built, backend string) string {
	if !i.nonroot {
		return none
	}
	i.capable = true
	options := func(n node) []string { return rights(n, "--user", "65534:0", "--security-opt=no-new-privileges") }
	got := i.run(t, rule1, `iptables-restore --noflush; iptables -w -S INPUT | /busybox grep -c 192.0.2.1
IPTABLES_WRAPPER_BACKEND=`+other(backend)+` iptables --version | /busybox sed 's/.*(/(/'; leads
version`, options(newNode(t, backend))...)
	return i.right(t, got, backend, "1", version(other(backend)))
}

// Another user. Where the image's files bring no capabilities, the container's first process has them, as podman gives
// them to it.
func asUser(user string) func(t *testing.T, i built, backend string) string {
	return func(t *testing.T, i built, backend string) string {
		got := i.run(t, "", "iptables -w -S >/dev/null; leads; version",
			rights(newNode(t, backend), "--user", user, "--volume", lock(t, 0o666))...)
		if want := i.wrapper() + "\n" + version("nft") + "\n"; backend == "legacy" && got == (result{want, "", 0}) {
			return guess
		}
		return i.right(t, got, backend)
	}
}

// The network namespace belongs to the user namespace, as podman makes it for users other than root.
func userNamespace(t *testing.T, i built, backend string) string {
	got := i.run(t, rule1, i.program(backend)+` iptables -t mangle -N KUBE-IPTABLES-HINT
iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; leads; version`,
		"--network=none", "--uidmap=0:100000:65536", "--gidmap=0:100000:65536", "--cap-drop=all",
		"--cap-add=NET_ADMIN,NET_RAW")
	return i.right(t, got, backend, "1")
}

// The build's RUN lines see a host that has the evidence.
func inBuild(t *testing.T, i built, backend string) string {
	n := newNode(t, backend)
	dir := dockerfile(t, "FROM "+i.ref, fmt.Sprintf(`RUN ["%s/iptables", "--version"]`, i.dir))
	cmd := command(t, append(append([]string{"build", "--no-cache", "--quiet", "--pull=never", "--network", "host"},
		host.Ulimits...), dir)...)
	cmd.Path, cmd.Args = "/usr/bin/nsenter", append([]string{"nsenter", "--net=/run/netns/" + n.name}, cmd.Args...)
	got := start(t, "", cmd)
	refused := strings.Contains(strings.ToLower(got.stderr), "operation not permitted")
	switch {
	case got.status == 0: // runc 1.3 warns that podman 4.9 asks for ambient capabilities, in the same words
	case refused:
		return noStart
	default:
		t.Fatalf("got %+v", got)
	}
	after := run(t, strings.TrimSpace(got.stdout), "", "leads", n.network())
	if after != (result{i.wrapper() + "\n", "", 0}) {
		t.Errorf("after the build: %+v", after)
	}
	return notKept
}

// What the package manager does to its links leaves the wrapper where it is, and it still works.
func reinstalled(t *testing.T, i built, backend string) string {
	if i.reinstall == "" {
		return none
	}
	name := "reinstalled-" + i.tag()
	lines := []string{"FROM " + i.ref, "USER 0", "RUN " + i.reinstall}
	if suite, ok := strings.CutPrefix(i.base, "debian:"); ok {
		lines = slices.Insert(lines, 1, "COPY --from="+base(t, "debs:"+suite)+" /debs /debs")
	}
	i.ref = build(t, name, dockerfile(t, lines...))
	got := i.run(t, "", "leads; iptables -S >/dev/null; leads; version", rights(newNode(t, backend))...)
	i.right(t, got, backend, i.wrapper())
	return kept
}
