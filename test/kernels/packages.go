// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// kernel is one of Debian's, in its flavour for virtual machines: the same firewall with fewer drivers.
type kernel struct {
	name  string // for -kernel
	suite string
	build string // of the wrapper, for the scripts
}

var all = []kernel{{"5.10", "bullseye", "386"}, {"6.1", "bookworm", "amd64"}, {"6.12", "trixie", "386"},
	{"sid", "sid", "amd64"}}

// cached returns a directory of the cache, which is filled if it is not there. It appears when it is complete. Another
// test run that needs the same one at that moment waits for it.
func cached(tb testing.TB, name string, fill func(dir string)) string {
	tb.Helper()
	dir := filepath.Join(host.Cache("kernels"), name)
	lock, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	host.Check(tb, err)
	defer lock.Close()
	host.Check(tb, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	unfinished, err := os.MkdirTemp(host.Cache("kernels"), "unfinished-")
	host.Check(tb, err)
	tb.Cleanup(func() { os.RemoveAll(unfinished) })
	fill(unfinished)
	host.Check(tb, os.Rename(unfinished, dir))
	return dir
}

// fetched is a kernel on this machine.
type fetched struct {
	version string // of the Debian package
	image   string
	modules string // a directory that holds lib/modules
}

// fetch brings a kernel from Debian's archive, once on this machine.
func fetch(tb testing.TB, k kernel) fetched {
	tb.Helper()
	dir := cached(tb, k.suite, func(dir string) {
		root := filepath.Join(tb.TempDir(), "root")
		host.Debootstrap(tb, "--variant=extract", "--include=linux-image-cloud-amd64",
			`--aptopt=APT::Install-Recommends "false"`, k.suite, root)
		// Modules are decompressed once here, and not at each boot.
		host.Run(tb, "sh", "-euc", `cd "$0"
			for from in lib/modules/* usr/lib/modules/*; do [ ! -d "$from/kernel" ] || break; done
			to=$1/lib/modules/${from##*/}
			for part in kernel/net kernel/fs/overlayfs kernel/lib kernel/crypto kernel/arch/x86/crypto \
				modules.builtin modules.order; do
				if [ -e "$from/$part" ]; then mkdir -p "$(dirname "$to/$part")"; cp -r "$from/$part" "$to/$part"; fi
			done
			find "$to" -name '*.ko.xz' -exec xz --decompress {} +
			depmod --basedir "$1" "${from##*/}"
			cp boot/vmlinuz-* "$1/vmlinuz" 2>/dev/null || cp "$from/vmlinuz" "$1/vmlinuz"
			grep -aoE 'Debian [0-9][^ ]* ' "$1/vmlinuz" | head -n 1 | cut -d' ' -f2 | tr -d '\n' >"$1/version"`,
			root, dir)
	})
	version, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil || len(version) == 0 {
		tb.Fatalf("the kernel has no version: %v", err)
	}
	return fetched{string(version), filepath.Join(dir, "vmlinuz"), dir}
}

// userland are the packages that the guest has besides Debian's essential ones.
var userland = []string{"iptables", "nftables", "ipset", "iproute2", "kmod", "libcap2-bin", "mount", "strace"}

// guestRoot makes the guest's files except for the kernel's and ours, once on this machine: an archive as the kernel
// unpacks it into its first root.
func guestRoot(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(cached(tb, "bookworm-"+strings.Join(userland, "-"), func(dir string) {
		root := filepath.Join(tb.TempDir(), "root")
		host.Debootstrap(tb, "--variant=essential", "--format=tar", "--include="+strings.Join(userland, ","),
			"bookworm", dir+"/root.tar")
		host.Run(tb, "sh", "-euc", `mkdir "$0"; tar -C "$0" --exclude='./dev/*' -xf "$1/root.tar"; rm "$1/root.tar"
			cd "$0"
			rm -rf usr/share/doc usr/share/man usr/share/locale usr/share/info usr/share/zoneinfo \
				usr/share/perl usr/lib/*/perl usr/lib/*/gconv usr/lib/locale \
				var/lib/apt var/cache/* var/lib/dpkg/info boot
			find . | cpio --quiet -o -H newc >"$1/root.cpio"`, root, dir)
	}), "root.cpio")
}

// initramfs writes what a guest starts from: the archive of its root, then these files and trees, by their paths in it.
func initramfs(tb testing.TB, to, root string, trees map[string]string) {
	tb.Helper()
	stage := tb.TempDir()
	for path, tree := range trees {
		host.Run(tb, "sh", "-euc", `mkdir -p "$(dirname "$0")"; cp -r "$1" "$0"`, filepath.Join(stage, path), tree)
	}
	host.Run(tb, "sh", "-euc", `cp "$1" "$0"; cd "$2"; find . | cpio --quiet -o -H newc >>"$0"`, to, root, stage)
}
