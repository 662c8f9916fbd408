// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// box is a container on a host of its own: the script it runs, and the state of the host.
type box struct {
	script   string   // in this directory
	host     string   // hint, docker, node, empty
	backend  string   // the host's backend; on an empty host, the one that the wrapper defaults to
	readonly bool     // its root
	wrapped  bool     // the six commands resolve to the wrapper, not to programs of the backend
	env      []string // more variables for the script
	// unordered means that the script's client adds rules in random order, which is then not compared.
	unordered bool
}

func (b box) String() string {
	root := "writable"
	if b.readonly {
		root = "read-only"
	}
	return b.backend + "/" + b.host + "/" + root
}

const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// run returns the directory with what box/lib.sh saved. The script is process 1 of its namespace: when it ends,
// everything that it started is killed.
func (b box) run(t *testing.T) string {
	t.Helper()
	shared, err := prepared()
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	empty, out := filepath.Join(work, "empty"), filepath.Join(work, "out")
	for _, dir := range []string{empty, out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/bash", "box/enter.sh")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "ROOTFS=" + shared.rootfs, "EMPTY=" + empty, "OUT=" + out, "BIN=" + shared.bin,
		"MODULE=" + here, "NODES=" + filepath.Join(here, "../rules/nodes"),
		"CLIENT=" + b.script, "HOST=" + b.host, "BACKEND=" + b.backend, "READONLY=" + digit(b.readonly),
		"WRAPPED=" + digit(b.wrapped),
	}, b.env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: unix.SIGKILL}
	if err := cmd.Run(); err != nil {
		t.Errorf("%s, wrapped: %v: %v\n%s%s", b, b.wrapped, err, output.Bytes(), last(out))
	}
	return out
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// last returns what the last step printed, to explain why a script failed.
func last(out string) string {
	files, _ := filepath.Glob(filepath.Join(out, "*.std*"))
	if len(files) == 0 {
		return ""
	}
	prefix, _, _ := strings.Cut(files[len(files)-1], ".std")
	var s strings.Builder
	for _, end := range []string{".stdout", ".stderr"} {
		content, _ := os.ReadFile(prefix + end)
		fmt.Fprintf(&s, "%s%s:\n%s", filepath.Base(prefix), end, content)
	}
	return s.String()
}

const suite = "trixie"

// packages lists Debian's clients and the tools that their scripts need.
var packages = []string{
	"iptables", "nftables", "iproute2", "ipset", "procps", "kmod", "conntrack", "util-linux", "libcap2-bin",
	"busybox-static", "dbus", "ca-certificates", "python3-systemd", "docker-cli",
	"fail2ban", "docker.io", "firewalld", "arno-iptables-firewall", "ufw", "wireguard-tools", "wireguard-go", "openvpn",
	"containernetworking-plugins",
}

// unpacked lists packages that conflict with others. They contain only scripts, so unpacking them is enough.
var unpacked = []string{"netfilter-persistent", "iptables-persistent"}

// versionsFile has the version of each package, for whoever wants to know.
const versionsFile = "usr/share/clients.versions"

const customise = `set -e
chroot "$1" sh -ec 'cd /tmp
apt-get download %[1]s >/dev/null
for package in *.deb; do dpkg-deb --extract "$package" /; done
dpkg-query --show >/%[2]s
for package in *.deb; do dpkg-deb --show "$package"; done >>/%[2]s
rm ./*.deb'`

// rootfs returns the root file system of a Debian with the clients, built on first use and cached. Nothing is installed
// on this machine.
func rootfs() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	script := fmt.Sprintf(customise, strings.Join(unpacked, " "), versionsFile)
	sum := sha256.Sum256([]byte(suite + strings.Join(packages, ",") + script))
	dir := filepath.Join(cache, "iptables-wrappers", "clients", suite+"-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(filepath.Join(dir, versionsFile)); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(dir), "unfinished-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(unfinished)
	cmd := exec.Command("mmdebstrap", "--quiet", "--variant=minbase", `--aptopt=APT::Install-Recommends "false"`,
		"--include="+strings.Join(packages, ","), "--customize-hook="+script, suite, unfinished)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mmdebstrap: %w\n%s", err, output)
	}
	return dir, os.Rename(unfinished, dir)
}
