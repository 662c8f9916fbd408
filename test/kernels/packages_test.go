// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

var all = []kernel{{"5.10", "bullseye", "386"}, {"6.1", "bookworm", "amd64"}, {"6.12", "trixie", "386"}, {"sid", "sid", "amd64"}}

const archive = "http://deb.debian.org/debian"

// cache is where packages stay for the next run. It is used as it is: remove it to start from today's.
func cache(tb testing.TB) string {
	tb.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "iptables-wrappers", "kernels")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// cached returns a directory of the cache, which is filled if it is not there. It appears when it is complete. Another
// test run that needs the same one at that moment waits for it.
func cached(tb testing.TB, name string, fill func(dir string)) string {
	tb.Helper()
	dir := filepath.Join(cache(tb), name)
	lock, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	unfinished, err := os.MkdirTemp(cache(tb), "unfinished-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(unfinished) })
	fill(unfinished)
	if err := os.Rename(unfinished, dir); err != nil {
		tb.Fatal(err)
	}
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
	dir := cached(tb, k.suite, func(dir string) { download(tb, k, dir) })
	version, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil {
		tb.Fatal(err)
	}
	return fetched{string(version), filepath.Join(dir, "vmlinuz"), dir}
}

func download(tb testing.TB, k kernel, dir string) {
	tb.Helper()
	tmp := tb.TempDir()
	root := aptRoot(tb, k.suite)
	name, version := newest(tb, root)
	packages := []string{name}
	// Newer ones keep the image and the modules in packages of their own.
	for _, match := range regexp.MustCompile(`(?m)^  Depends: (linux-(?:base|binary|modules)-[0-9]\S*)$`).FindAllStringSubmatch(apt(tb, root, "apt-cache", "depends", name), -1) {
		packages = append(packages, match[1])
	}
	apt(tb, root, "apt-get", append([]string{"download", "--quiet"}, packages...)...)
	files, err := filepath.Glob(filepath.Join(root, "*.deb"))
	if err != nil || len(files) != len(packages) {
		tb.Fatalf("downloaded %v for %v: %v", files, packages, err)
	}
	for _, file := range files {
		host.Run(tb, "dpkg-deb", "--extract", file, tmp)
	}
	image := one(tb, filepath.Join(tmp, "boot/vmlinuz-*"), filepath.Join(tmp, "usr/lib/modules/*/vmlinuz"))
	from := one(tb, filepath.Join(tmp, "lib/modules/*"), filepath.Join(tmp, "usr/lib/modules/*"))
	to := filepath.Join(dir, "lib/modules", filepath.Base(from))
	for _, part := range []string{"kernel/net", "kernel/fs/overlayfs", "kernel/lib", "kernel/crypto", "kernel/arch/x86/crypto"} {
		if _, err := os.Stat(filepath.Join(from, part)); err != nil {
			continue
		}
		host.Run(tb, "mkdir", "-p", filepath.Dir(filepath.Join(to, part)))
		host.Run(tb, "cp", "-r", filepath.Join(from, part), filepath.Join(to, part))
	}
	for _, file := range []string{"modules.builtin", "modules.order"} {
		host.Run(tb, "cp", filepath.Join(from, file), to)
	}
	// Decompressed once here, and not at each boot.
	host.Run(tb, "find", to, "-name", "*.ko.xz", "-exec", "xz", "--decompress", "{}", "+")
	host.Run(tb, "depmod", "--basedir", dir, filepath.Base(from))
	host.Run(tb, "cp", image, filepath.Join(dir, "vmlinuz"))
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte(version), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// one returns the only file that matches.
func one(tb testing.TB, patterns ...string) string {
	tb.Helper()
	var found []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		found = append(found, files...)
	}
	if len(found) != 1 {
		tb.Fatalf("%q match %q", patterns, found)
	}
	return found[0]
}

// newest returns the package that the suite's metapackage names, and its version.
func newest(tb testing.TB, root string) (name, version string) {
	tb.Helper()
	text := apt(tb, root, "apt-cache", "show", "linux-image-cloud-amd64")
	match := regexp.MustCompile(`(?m)^Depends:.* (linux-image-[0-9]\S*) \(= (\S+)\)`).FindStringSubmatch(text)
	if match == nil {
		tb.Fatalf("linux-image-cloud-amd64 names no kernel:\n%s", text)
	}
	return match[1], match[2]
}

// aptRoot is a directory with which apt sees a suite and nothing of this machine. Signatures are checked.
func aptRoot(tb testing.TB, suite string) string {
	tb.Helper()
	root := tb.TempDir()
	for _, dir := range []string{"etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/lib/dpkg"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"var/lib/dpkg/status":  "",
		"etc/apt/sources.list": fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", archive, suite),
		// A mirror may lag behind so far that sid's list, valid for a week, has run out.
		"apt.conf": fmt.Sprintf(`Dir %q; Dir::State::status %q; APT::Architecture "amd64"; APT::Sandbox::User "root";
Acquire::Check-Valid-Until "false"; Acquire::Languages "none"; Acquire::Retries "3";
`, root, filepath.Join(root, "var/lib/dpkg/status")),
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	apt(tb, root, "apt-get", "update", "--error-on=any")
	return root
}

func apt(tb testing.TB, root, program string, args ...string) string {
	tb.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(root, "apt.conf"), "LC_ALL=C")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		host.Cannot(tb, "get kernels from %s: %s: %v\n%s", archive, strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return stdout.String()
}

// userland are the packages that the guest has besides Debian's essential ones.
var userland = []string{"iptables", "nftables", "ipset", "iproute2", "kmod", "libcap2-bin", "mount", "strace"}

// notNeeded begin the paths that are left out of the guest.
var notNeeded = []string{
	"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/info/", "usr/share/zoneinfo/", "usr/share/perl/", "usr/lib/x86_64-linux-gnu/perl/",
	"usr/lib/x86_64-linux-gnu/gconv/", "usr/lib/locale/", "var/lib/apt/", "var/cache/", "var/lib/dpkg/info/", "boot/", "dev/",
}

// guestRoot makes the guest's files except for the kernel's and ours, once on this machine: a cpio archive.
func guestRoot(tb testing.TB, more ...string) string {
	tb.Helper()
	packages := slices.Concat(userland, more)
	return filepath.Join(cached(tb, "bookworm-"+strings.Join(packages, "-"), func(dir string) {
		cmd := exec.Command("mmdebstrap", "--quiet", "--variant=essential", "--format=tar", "--include="+strings.Join(packages, ","),
			`--aptopt=Acquire::Languages "none"`, "bookworm", filepath.Join(dir, "root.tar"), archive)
		if output, err := cmd.CombinedOutput(); err != nil {
			host.Cannot(tb, "make the guest's files: %v\n%s", err, output)
		}
		if err := cpioFromTar(filepath.Join(dir, "root.cpio"), filepath.Join(dir, "root.tar")); err != nil {
			tb.Fatal(err)
		}
		host.Run(tb, "rm", filepath.Join(dir, "root.tar"))
	}), "root.cpio")
}
