// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const qemu = "qemu-system-x86_64"

// machine is what a kernel is booted with.
type machine struct {
	image     string
	initramfs string
	accel     string // kvm or tcg
}

// tell boots the machine and returns what the guest tells. If the test fails, it shows how the console ends.
func (m machine) tell(t *testing.T, parameters string) []step {
	t.Helper()
	console, ended := m.boot(t, m.accel, 20*time.Minute, parameters)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the console ends:\n%s", tail(console))
		}
	})
	steps, err := parse(console, ended)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// boot starts the machine, waits until it ends, and returns its console.
func (m machine) boot(tb testing.TB, accel string, limit time.Duration, parameters string) (console string, ended error) {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), limit, fmt.Errorf("it hangs: it has not ended in %s", limit))
	defer cancel()
	// QEMU 7.2 without KVM gets the flags wrong after cmpxchg16b when an interrupt comes, and Linux panics in kmalloc.
	cpu := map[string]string{"kvm": "host", "tcg": "qemu64,-cx16"}[accel]
	cmd := exec.CommandContext(ctx, qemu, "-accel", accel, "-cpu", cpu, "-m", "1024", "-nic", "none", "-no-reboot",
		"-display", "none", "-monitor", "none", "-serial", "stdio", "-kernel", m.image, "-initrd", m.initramfs,
		"-append", "console=ttyS0 loglevel=1 panic=-1 rdinit=/init "+parameters)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return stdout.String(), err
}

// accelerator is kvm if a kernel boots with it, and tcg if not. That there is a /dev/kvm does not say that it works.
func (m machine) accelerator(tb testing.TB) string {
	tb.Helper()
	if file, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		return "tcg"
	} else {
		file.Close()
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		tb.Fatal(err)
	}
	// It takes the whole time limit to find that out, so it is remembered until this machine boots again.
	known := filepath.Join(cache(tb), "no-kvm")
	if content, err := os.ReadFile(known); err == nil && bytes.Equal(content, boot) {
		return "tcg"
	}
	if console, _ := m.boot(tb, "kvm", 15*time.Second, "state=none"); strings.Contains(console, endMark) {
		return "kvm"
	}
	if err := os.WriteFile(known, boot, 0o644); err != nil {
		tb.Fatal(err)
	}
	return "tcg"
}

// parse returns the steps that a console tells of. It is an error if it does not tell how it went to the end.
func parse(console string, ended error) ([]step, error) {
	var steps []step
	err := errors.New("the console is cut off: the guest has not said that it is done")
	for line := range strings.Lines(strings.ReplaceAll(console, "\r", "")) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.Contains(line, "Kernel panic"):
			return nil, fmt.Errorf("the kernel panics: %s", line)
		case strings.HasPrefix(line, stepMark):
			var s step
			if err := json.Unmarshal([]byte(strings.TrimPrefix(line, stepMark)), &s); err != nil {
				return nil, fmt.Errorf("a line of the console is damaged: %w", err)
			}
			steps = append(steps, s)
		case strings.HasPrefix(line, errorMark):
			return nil, errors.New("the guest " + strings.TrimPrefix(line, "guest: "))
		case line == endMark:
			err = nil
		}
	}
	if ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, err
	}
	return steps, nil
}

// tail is the end of a console, for who must find out why.
func tail(console string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(console, "\r", "")), "\n")
	lines = lines[max(0, len(lines)-30):]
	for i, line := range lines {
		if len(line) > 1000 {
			lines[i] = line[:1000] + "[…]"
		}
	}
	return strings.Join(lines, "\n")
}
