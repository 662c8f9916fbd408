// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package images builds the images of images/ and runs them, in containers and on hosts of both backends.
package images

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// top is the top of the repository.
const top = "../.."

// possible ends a test where containers cannot be run.
func possible(tb testing.TB) {
	tb.Helper()
	host.NeedsRoot(tb, "run containers")
	host.Needs(tb, "podman", "runc", "mmdebstrap", "ip", "nsenter", "iptables-nft")
}

// command is podman with the storage that all runs of these tests share.
func command(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	possible(tb)
	return host.Podman(storage, runRoot, args...)
}

// The second is where podman keeps what must not survive a reboot.
var storage, runRoot = host.Cache("storage"), "/run/iptables-wrappers-test"

func runTests(m *testing.M) (status int, err error) {
	baseDir, err = os.MkdirTemp("", prefix)
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(baseDir)
	if os.Geteuid() != 0 { // no container can be run
		return m.Run(), nil
	}
	lock, err := share()
	if err != nil {
		return 1, err
	}
	status = m.Run()
	prune(lock)
	return status, nil
}

// share keeps others from removing images from the storage until the file is closed.
func share() (lock *os.File, err error) {
	lock, err = os.Create(storage + ".lock")
	if err != nil {
		return nil, err
	}
	return lock, unix.Flock(int(lock.Fd()), unix.LOCK_SH)
}

// prune removes old images without a name, unless others share it. An image loses its name when another checkout
// builds one of that name, and podman cannot list images while one is being removed.
func prune(lock *os.File) {
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = host.Podman(storage, runRoot, "image", "prune", "--force", "--filter", "until=24h").Run()
	}
}

// baseDir is for the programs that the containers of this run are given.
var baseDir string

// prefix begins the names of hosts, before the number of the process.
const prefix = "iptables-wrapper-test-"

// podman runs a command of podman's that must succeed, and returns what it prints.
func podman(tb testing.TB, args ...string) string {
	tb.Helper()
	return strings.TrimSuffix(host.Output(tb, command(tb, args...)), "\n")
}

// build builds an image and returns its ID. No image is fetched. RUN lines have the network of this machine, for the
// package managers. The name keeps the image, and so its layers, for the next run.
func build(tb testing.TB, name, dir string, args ...string) (id string) {
	tb.Helper()
	args = append([]string{"build", "--quiet", "--pull=never", "--network", "host", "--tag", "localhost/" + name},
		args...)
	return podman(tb, append(append(args, host.Ulimits...), dir)...)
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
// image's. A user who is not root has no capabilities but those of the files, as in Kubernetes; podman would pass on
// those of the container.
func runArgs(tb testing.TB, i built, script string, options ...string) []string {
	tb.Helper()
	shell := base(tb, "shell") + ":/busybox:ro"
	if i.capable {
		shell = base(tb, "capable-shell") + ":/busybox:ro,suid"
	}
	args := []string{"run", "--rm", "--interactive", "--volume", shell, "--entrypoint", "/busybox"}
	args = append(append(append(args, host.Ulimits...), options...), i.ref)
	if i.nonroot && !i.capable {
		args = append(args, "setpriv", "--ambient-caps", "-net_admin,-net_raw", "--inh-caps", "-net_admin,-net_raw",
			"/busybox")
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

// node is a host's network namespace.
type node struct{ name string }

// newNode makes a host that uses a backend: kubelet's hint is in that, and the other backend has more rules.
func newNode(tb testing.TB, backend string) node {
	tb.Helper()
	n := bareNode(tb)
	var rules strings.Builder
	rules.WriteString("*filter\n")
	for i := range 20 {
		fmt.Fprintf(&rules, "-A INPUT -s 198.51.100.%d -j DROP\n", i)
	}
	rules.WriteString("COMMIT\n")
	n.feed(tb, rules.String(), "iptables-"+other(backend)+"-restore")
	n.feed(tb, "", "ip6tables-"+backend, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
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

// feed runs iptables or a restore on the node. It waits for the xtables lock, which the whole machine shares.
func (n node) feed(tb testing.TB, stdin, name string, args ...string) string {
	tb.Helper()
	return host.Feed(tb, stdin, "ip", append([]string{"netns", "exec", n.name, name, "--wait"}, args...)...)
}

func (n node) network() string { return "--network=ns:/run/netns/" + n.name }

func other(backend string) string {
	if backend == "nft" {
		return "legacy"
	}
	return "nft"
}
