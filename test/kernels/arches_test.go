// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"cmp"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// arches are other machines, by Go's name, and what stands for each here. s390x is big-endian, arm has 32 bits.
var arches = map[string]string{
	"arm64": "qemu-aarch64-static", "arm": "qemu-arm-static", "s390x": "qemu-s390x-static", "riscv64": "qemu-riscv64-static",
}

// needKernel are the tests that qemu-user cannot run: it passes neither netlink's messages for netfilter nor x_tables' socket
// options on, and /proc/self/exe is qemu's own file for who looks at more than its name.
var needKernel = []string{
	"TestKernelAgainstSave", "TestKernelWithoutCapability", "TestKernelWithoutOtherCapabilities", "TestKernelAsksTheThreadsNamespace",
	"TestCompat", "TestExtensions", "TestExamples", "TestKeepAndUndo",
}

// The unit tests and the fuzz targets' seeds, compiled for other machines.
func TestArches(t *testing.T) {
	if *onlyKernel != "" || *onlyState != "" {
		t.Skip("-kernel and -case ask for something else")
	}
	for arch, emulator := range arches {
		t.Run(arch, func(t *testing.T) {
			if _, err := exec.LookPath(emulator); err != nil {
				host.Cannot(t, "run programs for %s: %v; make test-kernels installs it", arch, err)
			}
			for _, pkg := range []string{"detect", "exec"} {
				t.Run(pkg, func(t *testing.T) {
					program := filepath.Join(t.TempDir(), pkg)
					host.Run(t, "env", "GOARCH="+arch, "go", "test", "-c", "-o", program, "../../"+pkg)
					output, err := emulate(t, filepath.Join(top, pkg), emulator, program, "-test.v")
					judgeTests(t, output)
					if ended := regexp.MustCompile(`(?m)^(PASS|FAIL)$`).MatchString(output); !ended {
						t.Errorf("%v, and it has not come to its end:\n%s", err, output)
					}
				})
			}
			t.Run("wrapper", func(t *testing.T) {
				program := filepath.Join(t.TempDir(), "iptables")
				host.Run(t, "env", "GOARCH="+arch, "make", "--no-print-directory", "-C", top, "build", "BINARY="+program)
				blind(t, emulator, program)
			})
		})
	}
}

// emulate runs a program under qemu-user. A process that a program with several threads starts there now and then waits for
// ever for one that it does not have, before it has become another program: then once more.
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

// judgeTests checks that all tests passed that do not need a kernel of this machine's own, and that those that do failed.
func judgeTests(t *testing.T, output string) {
	t.Helper()
	passed := 0
	for _, match := range regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\S+) `).FindAllStringSubmatch(output, -1) {
		excepted := slices.Contains(needKernel, match[2])
		switch {
		case match[1] == "PASS" && excepted:
			t.Errorf("%s passes: it is no exception any more", match[2])
		case match[1] == "FAIL" && !excepted:
			_, about, _ := strings.Cut(output, "=== RUN   "+match[2]+"\n")
			t.Errorf("%s fails:\n%s", match[2], about[:min(len(about), 2000)])
		case match[1] == "PASS":
			passed++
		}
	}
	if passed < 10 {
		t.Errorf("only %d tests passed:\n%s", passed, output)
	}
}

// blind runs the wrapper where qemu-user stands between it and the kernel. It cannot see a hint there, knows that it could
// have overlooked one, and becomes iptables all the same.
func blind(t *testing.T, emulator, program string) {
	t.Helper()
	for _, backend := range []string{"nft", "legacy"} {
		t.Run(backend, func(t *testing.T) {
			host.Netns(t)
			host.Run(t, "iptables-"+backend, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
			var r struct {
				Conclusive bool
				Evidence   []struct{ Backend, Family, Hint string }
			}
			// Its line for people comes behind the answer, on the same pipe.
			said, err := emulate(t, "", emulator, "-0", "iptables-wrapper", program, "detect", "-o", "json")
			if err := cmp.Or(err, json.NewDecoder(strings.NewReader(said)).Decode(&r)); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if r.Conclusive || len(r.Evidence) != 4 {
				t.Errorf("got %+v", r)
			}
			if got := r.Evidence[2]; backend == "legacy" && got.Hint != "unknown" {
				t.Errorf("of a table that it cannot read, it says %+v", got)
			}
			got, err := emulate(t, "", emulator, "-0", "iptables", program, "--version")
			if err != nil || !strings.HasPrefix(got, "iptables v1.") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
