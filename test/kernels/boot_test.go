// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// machine is what a kernel is booted with.
type machine struct {
	accel     string // kvm or tcg
	image     string
	initramfs string
}

// boot starts the machine, waits until it ends, and returns its console.
func (m machine) boot(tb testing.TB, limit time.Duration, parameters string) (console string, ended error) {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), limit, fmt.Errorf("it hangs: it has not ended in %s", limit))
	defer cancel()
	// QEMU 7.2 without KVM gets the flags wrong after cmpxchg16b when an interrupt comes, and Linux panics in kmalloc.
	cpu := map[string]string{"kvm": "host", "tcg": "qemu64,-cx16"}[m.accel]
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", m.accel, "-cpu", cpu, "-m", "1024", "-nic", "none", "-no-reboot",
		"-display", "none", "-monitor", "none", "-serial", "stdio", "-kernel", m.image, "-initrd", m.initramfs,
		"-append", "console=ttyS0 loglevel=1 panic=-1 rdinit=/init "+parameters)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		host.Cannot(tb, "boot a kernel: qemu-system-x86_64 is not installed; make test-kernels installs it")
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return stdout.String(), err
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
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
