// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const suite = "trixie"

// packages lists Debian's clients and the tools that their scripts need.
var packages = []string{
	"iptables", "nftables", "iproute2", "ipset", "procps", "kmod", "conntrack", "util-linux", "libcap2-bin", "busybox-static",
	"dbus", "ca-certificates", "python3-systemd", "docker-cli",
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

// rootfs returns the root file system of a Debian with the clients, built on first use and cached. Nothing is installed on
// this machine.
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
