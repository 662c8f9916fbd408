// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// binfmt registers qemu-user for arm64 in this user namespace alone, which has a binfmt_misc of its own since Linux
// 6.7, and then becomes the arguments. The magic is that of an ELF file for arm64; F opens the emulator now, so that
// containers need none.
const binfmt = `
mount --make-rprivate /
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":arm64:M::$magic:$mask:/usr/bin/qemu-aarch64-static:FPOC" >/proc/sys/fs/binfmt_misc/register
exec "$@"`

// Storage returns a directory for a podman storage of the test's own. In such a user namespace, podman cannot use the
// cached one.
func Storage(tb testing.TB) string {
	tb.Helper()
	storage := filepath.Join(tb.TempDir(), "storage")
	tb.Cleanup(func() {
		// After a container has ended, podman cleans up in the background, and makes directories of the storage again.
		for inArguments(tb, storage) {
			time.Sleep(20 * time.Millisecond)
		}
		_ = unix.Unmount(storage+"/overlay", unix.MNT_DETACH)
	})
	return storage
}

// inArguments reports whether a process has a text in its arguments.
func inArguments(tb testing.TB, text string) bool {
	tb.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(all) == 0 {
		tb.Fatalf("no processes: %v", err)
	}
	return slices.ContainsFunc(all, func(name string) bool {
		arguments, _ := os.ReadFile(name) // a process that has ended has none
		return strings.Contains(string(arguments), text)
	})
}

// Emulated makes a command run where programs for arm64 can be started, in a user namespace of its own.
func Emulated(tb testing.TB, cmd *exec.Cmd) *exec.Cmd {
	tb.Helper()
	if _, err := exec.LookPath("qemu-aarch64-static"); err != nil {
		Cannot(tb, "emulate arm64: %v; make test-all installs it", err)
	}
	if output, err := emulated(exec.Command("true")).CombinedOutput(); err != nil {
		Cannot(tb, "register an emulator in a user namespace (Linux 6.7): %v: %s", err, output)
	}
	return emulated(cmd)
}

func emulated(cmd *exec.Cmd) *exec.Cmd {
	everyone := []syscall.SysProcIDMap{{Size: math.MaxInt32}}
	sh := exec.Command("sh", append([]string{"-ec", binfmt, "sh"}, cmd.Args...)...)
	sh.Dir, sh.Env = cmd.Dir, cmd.Env
	sh.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings:                everyone,
		GidMappings:                everyone,
		GidMappingsEnableSetgroups: true,
		Pdeathsig:                  unix.SIGKILL,
	}
	return sh
}
