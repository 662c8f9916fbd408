// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// arches are other machines, by Go's name, and what stands for each here. s390x is big-endian, arm has 32 bits.
var arches = map[string]string{
	"arm64": "qemu-aarch64-static", "arm": "qemu-arm-static", "s390x": "qemu-s390x-static",
	"riscv64": "qemu-riscv64-static",
}

// kernelFree matches the tests that ask no kernel: qemu-user forwards neither netlink's messages for netfilter nor the
// socket options of x_tables, and does not know openat2(2) or namespaces.
const kernelFree = "^(Fuzz.*|TestParse.*|TestReply|TestReplyErr|TestAttributes|TestLayout|TestListedBelow|" +
	"TestDryRunRepl.*|TestDryRunIsNeverActive|TestNumbersLikeOracle|TestHeldIsNoBackend|TestDecideReturnsEvidence|" +
	"TestWords|TestBecause|TestFirstError|TestAdd|TestMarkersOf|TestCommands|TestFind|TestFindPassesOver|" +
	"TestFindRefuses)$"

// The unit tests and the fuzz targets' seeds, compiled for other machines.
func TestArches(t *testing.T) {
	t.Parallel()
	if few() || *onlyKernel != "" || *onlyState != "" {
		t.Skip("only with TEST_ALL, and without -kernel or -case")
	}
	for arch, emulator := range arches {
		t.Run(arch, func(t *testing.T) {
			if _, err := exec.LookPath(emulator); err != nil {
				host.Cannot(t, "run programs for %s: %v; test/tools.sh all installs it", arch, err)
			}
			tests := map[string]int{"internal/nft": 10, "internal/xtables": 8, "detect": 8, "exec": 4}
			for pkg, atLeast := range tests {
				t.Run(pkg, func(t *testing.T) {
					program := filepath.Join(t.TempDir(), filepath.Base(pkg))
					host.Run(t, "env", "GOARCH="+arch, "go", "test", "-c", "-o", program, "../../"+pkg)
					output, err := emulate(t, filepath.Join(top, pkg), emulator, program, "-test.v",
						"-test.run="+kernelFree)
					if passed := strings.Count(output, "\n--- PASS: "); err != nil || passed < atLeast {
						t.Errorf("%v, %d tests passed:\n%s", err, passed, output)
					}
				})
			}
			t.Run("wrapper", func(t *testing.T) {
				program := filepath.Join(t.TempDir(), "iptables")
				host.Run(t, "env", "GOARCH="+arch, "make", "--no-print-directory", "-C", top, "build",
					"BINARY="+program)
				blind(t, emulator, program)
				installed(t, emulator, program)
			})
		})
	}
}

// emulate runs a program under qemu-user. There, a child of a program with several threads sometimes waits for ever,
// before its execve, for a thread that it does not have: then emulate tries again.
func emulate(t *testing.T, dir string, command ...string) (output string, err error) {
	t.Helper()
	for range 3 {
		limited, stop := context.WithTimeout(t.Context(), time.Minute) // thirty times what it takes
		cmd := exec.CommandContext(limited, command[0], command[1:]...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to end what it has started, too
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		var content []byte
		content, err = cmd.CombinedOutput()
		hung := limited.Err() != nil
		stop()
		if !hung {
			return string(content), err
		}
		t.Logf("%s hung", cmd)
	}
	t.Fatalf("%v hung three times", command)
	return "", nil
}

// blind runs the wrapper where qemu-user stands between it and the kernel. It cannot see a hint there, knows that it
// could have overlooked one, and becomes iptables all the same.
func blind(t *testing.T, emulator, program string) {
	t.Helper()
	for _, backend := range []string{"nft", "legacy"} {
		t.Run(backend, func(t *testing.T) {
			host.Netns(t)
			host.Run(t, "iptables-"+backend, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
			var r struct {
				Certain  bool
				Evidence map[string]struct{ Hint []string }
			}
			// Its line for people comes behind the answer, on the same pipe.
			said, err := emulate(t, "", emulator, "-0", "iptables-wrapper", program, "detect", "-o", "json")
			if err := cmp.Or(err, json.NewDecoder(strings.NewReader(said)).Decode(&r)); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if r.Certain {
				t.Errorf("got %+v", r)
			}
			if got := r.Evidence["legacy"].Hint; backend == "legacy" && (len(got) != 2 || got[0] != "unknown") {
				t.Errorf("of a table that it cannot read, it says %+v", got)
			}
			got, err := emulate(t, "", emulator, "-0", "iptables", program, "--version")
			if err != nil || !strings.HasPrefix(got, "iptables v1.") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// installed installs the wrapper where qemu-user stands between it and the kernel, by its path and as a shell that
// finds it in PATH would, and calls it by its name. To stat(2), /proc/self/exe is the emulator there, so that nothing
// is kept.
func installed(t *testing.T, emulator, program string) {
	t.Helper()
	host.Netns(t)
	dir := t.TempDir()
	wrapper := filepath.Join(dir, "iptables-wrapper")
	host.Run(t, "cp", program, wrapper)
	for _, argv0 := range []string{"iptables-wrapper", wrapper} {
		said, err := emulate(t, "", emulator, "-0", argv0, wrapper, "install", "--dir", dir)
		if err != nil {
			t.Fatalf("install by %s: %v: %s", argv0, err, said)
		}
	}
	target, err := os.Readlink(filepath.Join(dir, "iptables-current"))
	if err != nil || filepath.Base(target) != "iptables-wrapper" {
		t.Errorf("the switch points to %q, %v", target, err)
	}
	got, err := emulate(t, "", emulator, "-0", filepath.Join(dir, "iptables"), filepath.Join(dir, "iptables"),
		"--version")
	if err != nil || !strings.HasPrefix(got, "iptables v1.") {
		t.Errorf("got %q, %v", got, err)
	}
}
