// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package images builds the images of images/ and runs them, in containers and on hosts of both modes.
package images

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// top is the top of the repository.
const top = "../.."

// ulimits are what podman must not raise where it cannot.
var ulimits = []string{"--ulimit", "nofile=20000:20000", "--ulimit", "nproc=4096:4096"}

// wantAll ends a test that "make test" leaves out: where nothing has been built before, it takes minutes.
func wantAll(tb testing.TB) {
	tb.Helper()
	if !host.All() {
		tb.Skip("one image stands for the others; make test-all runs this")
	}
}

// cache is where base images, and podman's storage, stay for the next run.
func cache(tb testing.TB) string {
	tb.Helper()
	dir, err := cacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "iptables-wrappers")
	return dir, os.MkdirAll(dir, 0o755)
}

// possible ends a test where containers cannot be run.
func possible(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		host.Cannot(tb, "run containers: run it as root")
	}
	for _, program := range []string{"podman", "runc", "mmdebstrap", "ip", "nsenter", "iptables-nft"} {
		if _, err := exec.LookPath(program); err != nil {
			host.Cannot(tb, "run %s: it is not installed; make test-images installs it", program)
		}
	}
}

// command is podman with a storage of its own.
func command(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	possible(tb)
	return podmanCommand(cache(tb), args...)
}

func podmanCommand(cache string, args ...string) *exec.Cmd {
	return exec.Command("podman", append([]string{
		"--root", filepath.Join(cache, "storage"), "--runroot", "/run/iptables-wrappers-test",
		"--runtime", "runc", "--cgroup-manager", "cgroupfs", "--log-level", "error",
	}, args...)...)
}

// TestMain removes what interrupted runs have left, and afterwards the names of this one, and old images that have none.
func TestMain(m *testing.M) {
	left, _ := filepath.Glob("/run/netns/" + prefix + "*")
	for _, path := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), "-")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			_ = exec.Command("ip", "netns", "delete", filepath.Base(path)).Run()
		}
	}
	var err error
	if baseDir, err = os.MkdirTemp("", prefix); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(baseDir)
	if dir, err := cacheDir(); err == nil && os.Geteuid() == 0 {
		untag(dir)
		_ = podmanCommand(dir, "image", "prune", "--force", "--filter", "until=24h").Run()
	}
	os.Exit(status)
}

// untag removes the names of this run and of those that have ended.
func untag(cache string) {
	images, _ := podmanCommand(cache, "images", "--noheading", "--format", "{{.Repository}}:{{.Tag}}").Output()
	for _, name := range strings.Fields(string(images)) {
		var pid int
		if n, _ := fmt.Sscanf(name, "localhost/run-%d/", &pid); n == 1 && (pid == os.Getpid() || unix.Kill(pid, 0) != nil) {
			_ = podmanCommand(cache, "untag", name).Run()
		}
	}
}

// baseDir is for the programs that the containers of this run are given.
var baseDir string

// prefix begins the names of hosts, before the number of the process.
const prefix = "iptables-wrapper-test-"

// podman runs a command of podman's that must succeed, and returns what it prints.
func podman(tb testing.TB, args ...string) string {
	tb.Helper()
	return output(tb, command(tb, args...))
}

func output(tb testing.TB, cmd *exec.Cmd) string {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		host.Cannot(tb, "run %s: it is not installed; make test-images installs it", cmd.Path)
	}
	if err != nil {
		tb.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, tail(stdout.String()), tail(stderr.String()))
	}
	return strings.TrimSuffix(stdout.String(), "\n")
}

func tail(s string) string {
	if len(s) > 6000 {
		return "[…]" + s[len(s)-6000:]
	}
	return s
}

// build builds an image and returns its ID. No image is fetched. RUN lines have the network of this machine, for the package
// managers. The name keeps the image, and so its layers, for the next run. A run in another checkout may take that name, and
// removes images without one, so the image has a name of this run, too.
func build(tb testing.TB, name, dir string, args ...string) (id string) {
	tb.Helper()
	args = append([]string{"build", "--quiet", "--pull=never", "--network", "host", "--tag", "localhost/" + name, "--tag", runTag(os.Getpid()) + name}, args...)
	return podman(tb, append(append(args, ulimits...), dir)...)
}

// runTag begins the names of the images that a run uses.
func runTag(pid int) string { return fmt.Sprintf("localhost/run-%d/", pid) }

// bases are the images that others start from here, each made once, by name.
var bases sync.Map

type baseImage struct {
	sync.Mutex
	tried bool
	image string
}

// base returns an image that stands for a distribution's own, and the wrapper's own.
func base(tb testing.TB, name string) string {
	tb.Helper()
	possible(tb)
	made, _ := bases.LoadOrStore(name, new(baseImage))
	b := made.(*baseImage)
	b.Lock()
	defer b.Unlock()
	if !b.tried {
		b.tried = true
		b.image = makeBase(tb, name)
	}
	if b.image == "" {
		tb.Fatalf("base image %s could not be made", name)
	}
	return b.image
}

func makeBase(tb testing.TB, name string) string {
	tb.Helper()
	distribution, variant, _ := strings.Cut(name, ":")
	switch distribution {
	case "debian":
		return debian(tb, variant)
	case "shell":
		// A static shell, to be brought along into containers.
		ref := build(tb, name, dockerfile(tb, "FROM "+base(tb, "debian:trixie"),
			"RUN apt-get update && apt-get install --yes --no-install-recommends busybox-static"))
		id := podman(tb, "create", ref, "-")
		defer podman(tb, "rm", id)
		path := filepath.Join(baseDir, "busybox")
		podman(tb, "cp", id+":/bin/busybox", path)
		return path
	case "capable-shell":
		path := filepath.Join(baseDir, "busybox-capable")
		host.Run(tb, "cp", base(tb, "shell"), path)
		host.Run(tb, "setcap", "cap_net_admin,cap_net_raw=ep", path)
		return path
	case "golang":
		return build(tb, name, "bases/golang", "--build-arg", "BASE="+base(tb, "debian:bookworm"))
	case "iptables-wrapper":
		if !host.All() {
			return build(tb, name, wrapperContext(tb))
		}
		return build(tb, name, top, goArgs(tb)...)
	case "debs":
		// The iptables package as a file, to reinstall it without a network.
		return build(tb, "debs-"+variant, dockerfile(tb, "FROM "+base(tb, "debian:"+variant),
			"WORKDIR /debs", "RUN apt-get update && apt-get download iptables"))
	case "fedora":
		return build(tb, "base-fedora", "bases/fedora", "--build-arg", "BASE="+base(tb, "debian:trixie"))
	case "busybox":
		rootfs := build(tb, "base-rootfs", top+"/images/distroless", "--target", "rootfs",
			"--build-arg", "BASE="+base(tb, "debian:trixie"), "--build-arg", "WRAPPER="+base(tb, "iptables-wrapper"))
		return build(tb, "base-"+variant, "bases/busybox", "--build-arg", "ROOTFS="+rootfs, "--build-arg", "LAYOUT="+variant)
	}
	tb.Fatalf("no base image %q", name)
	return ""
}

// wrapperContext returns a directory for an image of the wrapper that needs no compiler in a container: the wrapper, its
// licence and a Dockerfile.
func wrapperContext(tb testing.TB, env ...string) (dir string) {
	tb.Helper()
	dir = dockerfile(tb, "FROM scratch", "COPY iptables-wrapper LICENSE /", `ENTRYPOINT ["/iptables-wrapper"]`)
	binary := os.Getenv("IPTABLES_WRAPPER")
	if len(env) > 0 || binary == "" {
		binary = filepath.Join(baseDir, "iptables-wrapper") // make takes no path with a test's name
		host.Run(tb, "env", append(env, "make", "--no-print-directory", "-C", top, "build", "BINARY="+binary)...)
	}
	host.Run(tb, "cp", binary, dir+"/iptables-wrapper")
	host.Run(tb, "cp", top+"/LICENSE", dir)
	return dir
}

// debian makes an image of a suite from Debian's archive, once on this machine. It holds apt and what that needs.
func debian(tb testing.TB, suite string) string {
	tb.Helper()
	tar := filepath.Join(cache(tb), suite+".tar")
	if _, err := os.Stat(tar); err != nil {
		unfinished := filepath.Join(tb.TempDir(), suite+".tar")
		// A mirror may lag behind so far that sid's list, valid for a week, has run out. Its signature is checked.
		output(tb, exec.Command("mmdebstrap", "--quiet", "--variant=apt", "--format=tar", "--include=ca-certificates",
			`--aptopt=Acquire::Check-Valid-Until "false"`, `--aptopt=Acquire::Languages "none"`,
			suite, unfinished, "http://deb.debian.org/debian"))
		host.Run(tb, "mv", unfinished, tar) // perhaps to another file system
	}
	name := "localhost/debian:" + suite
	if command(tb, "image", "exists", name).Run() != nil {
		podman(tb, "import", "--quiet", tar, name)
	}
	return name
}

// goArgs let the Dockerfile at the top build with this machine's Go and what it has downloaded and compiled already.
func goArgs(tb testing.TB) []string {
	tb.Helper()
	env := strings.Fields(host.Run(tb, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"))
	return []string{
		"--build-arg", "GO_IMAGE=" + base(tb, "golang"), "--timestamp", "0",
		"--volume=" + env[0] + ":/usr/local/go:ro", "--volume=" + env[1] + ":/root/go/pkg/mod", "--volume=" + env[2] + ":/root/.cache/go-build",
	}
}

// node is a host's network namespace.
type node struct{ name string }

// newNode makes a host that uses a mode: kubelet's hint is in it, and the other backend has more rules.
func newNode(tb testing.TB, mode string) node {
	tb.Helper()
	n := bareNode(tb)
	var rules strings.Builder
	rules.WriteString("*filter\n")
	for i := range 20 {
		fmt.Fprintf(&rules, "-A INPUT -s 198.51.100.%d -j DROP\n", i)
	}
	rules.WriteString("COMMIT\n")
	n.feed(tb, rules.String(), "iptables-"+other(mode)+"-restore")
	n.feed(tb, "", "ip6tables-"+mode, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	return n
}

// bareNode has nothing in it.
func bareNode(tb testing.TB) node {
	tb.Helper()
	possible(tb)
	nodes.Lock()
	nodes.made++
	n := node{fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), nodes.made)}
	nodes.Unlock()
	host.Run(tb, "ip", "netns", "add", n.name)
	tb.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", n.name).Run() })
	return n
}

var nodes struct {
	sync.Mutex
	made int
}

func (n node) feed(tb testing.TB, stdin, name string, args ...string) string {
	tb.Helper()
	return host.Feed(tb, stdin, "ip", append([]string{"netns", "exec", n.name, name}, args...)...)
}

func (n node) network() string { return "--network=ns:/run/netns/" + n.name }

func other(mode string) string {
	if mode == "nft" {
		return "legacy"
	}
	return "nft"
}

// result is what a container printed, and its status.
type result struct {
	stdout, stderr string
	status         int
}

// run runs a script in a new container.
func run(tb testing.TB, ref, stdin, script string, options ...string) result {
	tb.Helper()
	return start(tb, stdin, command(tb, runArgs(tb, built{ref: ref}, script, options...)...))
}

// runArgs run a script. The shell is brought along, because not all images have one; what the script calls is the
// image's. A user who is not root has no capabilities but those of the files, as in Kubernetes; podman would pass on those
// of the container.
func runArgs(tb testing.TB, i built, script string, options ...string) []string {
	tb.Helper()
	shell := base(tb, "shell") + ":/busybox:ro"
	if i.capable {
		shell = base(tb, "capable-shell") + ":/busybox:ro,suid"
	}
	args := []string{"run", "--rm", "--interactive", "--volume", shell, "--entrypoint", "/busybox"}
	args = append(append(append(args, ulimits...), options...), i.ref)
	if i.nonroot && !i.capable {
		args = append(args, "setpriv", "--ambient-caps", "-net_admin,-net_raw", "--inh-caps", "-net_admin,-net_raw", "/busybox")
	}
	return append(args, "sh", "-c", prelude+script)
}

// start runs it. What iptables-nft says about legacy's tables on each call is not of interest.
func start(tb testing.TB, stdin string, cmd *exec.Cmd) result {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		tb.Fatalf("%s: %v", cmd, err)
	}
	warning := regexp.MustCompile(`# Warning: iptables-legacy tables present, use .* to see them\n`)
	return result{stdout.String(), warning.ReplaceAllString(stderr.String(), ""), cmd.ProcessState.ExitCode()}
}
