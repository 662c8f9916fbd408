// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Cache is a directory where what is fetched or built stays for the next run. If it cannot be made, whoever uses it
// says so.
func Cache(path ...string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(append([]string{dir, "iptables-wrappers"}, path...)...)
	_ = os.MkdirAll(dir, 0o755)
	return dir
}

// Debootstrap makes a root from Debian's archive: the last arguments are the suite and where. A mirror may lag behind
// so far that sid's list, valid for a week, has run out; its signature is checked.
func Debootstrap(tb testing.TB, args ...string) {
	tb.Helper()
	const archive = "http://deb.debian.org/debian"
	cmd := exec.Command("mmdebstrap", "--quiet",
		`--aptopt=Acquire::Languages "none"`, `--aptopt=Acquire::Check-Valid-Until "false"`)
	cmd.Args = append(cmd.Args, args...)
	cmd.Args = append(cmd.Args, archive)
	if output, err := cmd.CombinedOutput(); err != nil {
		Cannot(tb, "get packages from %s: %v\n%s", archive, err, output)
	}
}

// DebianTar is an archive with apt and what that needs, from Debian, made once on this machine.
func DebianTar(tb testing.TB, suite, name string, options ...string) string {
	tb.Helper()
	tar := filepath.Join(Cache(), name+".tar")
	if _, err := os.Stat(tar); err != nil {
		unfinished := filepath.Join(tb.TempDir(), name+".tar")
		Debootstrap(tb, append(options, "--format=tar", "--variant=apt", suite, unfinished)...)
		Run(tb, "mv", unfinished, tar) // perhaps to another file system
	}
	return tar
}

// OldIptables is the program of iptables-nft 1.8.7, from Debian 11, below a root with that version's legacy program,
// library and extensions.
func OldIptables(tb testing.TB) (program string) {
	tb.Helper()
	root := unpacked(tb, "iptables-debian-11", "bullseye", "iptables",
		"./usr/lib/*/*xtables*", "./usr/sbin/xtables-nft-multi", "./usr/sbin/xtables-legacy-multi")
	return filepath.Join(root, "usr/sbin/xtables-nft-multi")
}

// NewestIptables is a root, for chroot, with the newest iptables and nft that Debian has.
func NewestIptables(tb testing.TB) (root string) {
	tb.Helper()
	return unpacked(tb, "iptables-debian-sid", "sid", "iptables,nftables,libc6",
		"./usr/sbin", "./usr/lib", "./usr/lib64")
}

// unpacked is a directory of the cache with some files of packages. They are fetched before a container is made, which
// has neither the network nor the variable that says where the cache is.
func unpacked(tb testing.TB, name, suite, packages string, files ...string) (root string) {
	tb.Helper()
	variable := "TEST_" + name
	root = os.Getenv(variable)
	if root != "" {
		return root
	}
	root = filepath.Join(Cache(), name)
	_, err := os.Stat(root)
	if err != nil {
		tar := filepath.Join(tb.TempDir(), "root.tar")
		Debootstrap(tb, "--variant=extract", "--include="+packages, "--format=tar", suite, tar)
		unfinished := Cache(fmt.Sprintf("%s-%d", name, os.Getpid()))
		defer os.RemoveAll(unfinished)
		Run(tb, "tar", append([]string{"-xf", tar, "-C", unfinished, "--wildcards"}, files...)...)
		for _, directory := range []string{"lib", "lib64"} { // usrmerge, which a postinst would do
			Check(tb, os.Symlink("usr/"+directory, filepath.Join(unfinished, directory)))
		}
		_ = os.Rename(unfinished, root) // another package's test may have been faster
	}
	Check(tb, os.Setenv(variable, root))
	return root
}

// Sources copies what git has of a tree, changed files included, into a directory, as an archive of a release has it.
func Sources(top, dir string) error {
	cmd := exec.Command("sh", "-euc", `mkdir -p "$2"; cd "$1"
git ls-files -z --cached --others --exclude-standard | tar --ignore-failed-read --null -cf - -T - | tar -C "$2" -xf -`,
		"-", top, dir)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy the files of %q: %w\n%s", top, err, output)
	}
	return nil
}

// Podman is podman with a storage of the tests.
func Podman(storage, runRoot string, args ...string) *exec.Cmd {
	return exec.Command("podman", append([]string{
		"--root", storage, "--runroot", runRoot, "--runtime", "runc", "--cgroup-manager", "cgroupfs", "--log-level",
		"error",
	}, args...)...)
}

// Ulimits are what podman must not raise where it cannot.
var Ulimits = []string{"--ulimit=nofile=20000:20000", "--ulimit=nproc=4096:4096"}

// Needs ends a test where a program is missing.
func Needs(tb testing.TB, programs ...string) {
	tb.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			Cannot(tb, "run %s: it is not installed; make test-all installs it", program)
		}
	}
}
