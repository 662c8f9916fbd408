// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is set in the environment of a test process that is a container's first process. Its value is an empty
// directory for what the mounts need.
const inside = "IPTABLES_WRAPPER_TEST_INSIDE"

// ChangedDirs are private to a container: a test may do anything in them. update-alternatives writes to the last three.
var ChangedDirs = []string{"/usr/sbin", "/etc/alternatives", "/var/lib/dpkg", "/var/log"}

// Contain says whether the test runs in a container of its own. If not, it starts the test once more in one, reports
// how that went, and returns false. So a test begins with
//
//	if !host.Contain(t) {
//		return
//	}
//
// The test process is process 1 of its container and has a network namespace of its own, so that this one is "the
// container's own". The container has private copies of ChangedDirs with the iptables of Debian's package in them,
// whatever this machine has there, an empty /run, and a /dev of its own. /tmp is the machine's; TMPDIR is a directory
// of the container's own. Besides that, its environment is a plain PATH and the variables that control the tests. So it
// runs beside other tests, and must not call t.Parallel itself.
func Contain(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	t.Parallel()
	self, err := os.Executable()
	Check(t, err)
	// A test's name is its path among the tests, each part to be matched as a whole.
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	args := []string{"-test.run=" + strings.Join(pattern, "/"), "-test.v", "-test.timeout=1h"}
	// Not t.TempDir: a comma in a test's name would end a mount option.
	dir, err := os.MkdirTemp("", "container")
	Check(t, err)
	defer os.Remove(dir)
	cmd := Contained(dir, self, append(args, extraArgs()...)...)
	if !All() {
		// One processor starts fewer threads. In "make test-all", and in the conformance suite, there are all.
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name == "CI" || name == "IPTABLES_WRAPPER" || strings.HasPrefix(name, "TEST_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	switch passed := bytes.Contains(output.Bytes(), []byte("--- PASS: "+t.Name()+" ")); {
	case err != nil && cmd.ProcessState == nil:
		Cannot(t, "make a container: %v; run it as root", err)
	case err == nil && bytes.Contains(output.Bytes(), []byte("--- SKIP: "+t.Name()+" ")):
		t.Skipf("%s", output.Bytes())
	case err != nil || !passed:
		t.Fatalf("%v in its container:\n%s", err, output.Bytes())
	case testing.Verbose():
		t.Logf("%s", output.Bytes())
	}
	return false
}

// Contained is a container's first process, which must call Enter. The mounts take an empty directory.
func Contained(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = []string{inside + "=" + dir, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
		Pdeathsig:  unix.SIGKILL,
	}
	return cmd
}

// extraArgs are the arguments of this test run that a contained test needs too.
func extraArgs() []string {
	var args []string
	for _, arg := range os.Args[1:] {
		if arg == "-update" {
			args = append(args, arg)
		}
	}
	return args
}

// Enter makes the mounts of a container, if this process is the first of one. It comes before all else.
func Enter() error {
	dir := os.Getenv(inside)
	if dir == "" {
		return nil
	}
	// Go leaves these two ignored where they were, as under nohup, and so would every process that a test starts: then
	// a test that ends one by SIGHUP waits for ever. What is caught here has its default there.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return &os.PathError{Op: "make private", Path: "/", Err: err}
	}
	for _, m := range []struct{ kind, target string }{{"proc", "/proc"}, {"tmpfs", "/run"}, {"tmpfs", dir}} {
		if err := unix.Mount("none", m.target, m.kind, 0, ""); err != nil {
			return &os.PathError{Op: "mount " + m.kind, Path: m.target, Err: err}
		}
	}
	if err := ownDev(dir); err != nil {
		return fmt.Errorf("make a /dev: %w", err)
	}
	private, err := privateDirs()
	if err != nil {
		return err
	}
	for _, changed := range private {
		upper, work := filepath.Join(dir, "upper", changed), filepath.Join(dir, "work", changed)
		if err := os.MkdirAll(upper, 0o755); err != nil {
			return err
		}
		if err := os.MkdirAll(work, 0o755); err != nil {
			return err
		}
		options := "lowerdir=" + changed + ",upperdir=" + upper + ",workdir=" + work
		if err := unix.Mount("overlay", changed, "overlay", 0, options); err != nil {
			return &os.PathError{Op: "mount overlay", Path: changed, Err: err}
		}
	}
	if err := onlyDebians(); err != nil {
		return err
	}
	// What is written to a temporary directory stays in the container, too.
	temporary := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temporary, 0o777|os.ModeSticky); err != nil {
		return err
	}
	return os.Setenv("TMPDIR", temporary)
}

// ownDev gives the container a /dev of its own, as container runtimes make it: a tmpfs of root, in which ptmx is a
// symlink.
func ownDev(dir string) error {
	dev := filepath.Join(dir, "dev")
	err := errors.Join(os.Mkdir(dev, 0o755), unix.Mount("none", dev, "tmpfs", 0, "mode=755"))
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dev, device), nil, 0o666),
			unix.Mount("/dev/"+device, filepath.Join(dev, device), "", unix.MS_BIND, ""))
	}
	err = errors.Join(err,
		os.Mkdir(dev+"/pts", 0o755),
		unix.Mount("none", dev+"/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=620"),
		os.Mkdir(dev+"/shm", 0o755),
		unix.Mount("none", dev+"/shm", "tmpfs", 0, "mode=1777"))
	for name, target := range map[string]string{
		"ptmx":   "pts/ptmx",
		"fd":     "/proc/self/fd",
		"stdin":  "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2",
	} {
		err = errors.Join(err, os.Symlink(target, filepath.Join(dev, name)))
	}
	return errors.Join(err, unix.Mount(dev, "/dev", "", unix.MS_MOVE, ""))
}
