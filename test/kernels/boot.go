// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const qemu = "qemu-system-x86_64"

// machine is what a kernel is booted with.
type machine struct {
	image     string
	initramfs string
	accel     string        // kvm or tcg
	memory    string        // in MiB
	limit     time.Duration // bootLimit if 0
}

// Limits for a guest that hangs: many times what one takes on a loaded machine.
const (
	beginLimit = 5 * time.Minute
	bootLimit  = 45 * time.Minute
)

// bootsMax is how often a guest is started that the emulator spoils.
const bootsMax = 3

// tell boots the machine and returns what the guest reports. If the test fails, it shows how the console ends.
func (m machine) tell(t *testing.T, parameters string) []section {
	t.Helper()
	text, boots, ended := persist(func() (string, error) {
		return m.boot(t, m.accel, beginLimit, cmp.Or(m.limit, bootLimit), parameters)
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("booted %d times; the console ends:\n%s", boots, tail(text))
		}
	})
	report, err := parse(text, ended)
	host.Check(t, err)
	return report
}

// persist starts a guest until the emulator does not spoil it, at most bootsMax times.
func persist(start func() (string, error)) (text string, boots int, ended error) {
	for boots < bootsMax && spoiled(text) {
		boots++
		text, ended = start()
	}
	return text, boots, ended
}

// unneeded turns off what no test needs. It takes a sixth of a guest's time.
const unneeded = "mitigations=off nokaslr cryptomgr.notests "

// boot starts the machine, waits until it ends, and returns its console.
func (m machine) boot(
	tb testing.TB, accel string, begin, limit time.Duration, parameters string,
) (text string, ended error) {
	tb.Helper()
	ctx, cancel := context.WithCancelCause(tb.Context())
	defer cancel(nil)
	c := filepath.Join(tb.TempDir(), "console")
	file, err := os.Create(c)
	host.Check(tb, err)
	defer file.Close()
	within := func(limit time.Duration, mark string) *time.Timer {
		return time.AfterFunc(limit, func() {
			if text, _ := os.ReadFile(c); !bytes.Contains(text, []byte(mark)) {
				cancel(fmt.Errorf("it hangs: no %q within %s", mark, limit))
			}
		})
	}
	defer within(begin, beginMark).Stop()
	defer within(limit, endMark).Stop()
	// QEMU 7.2 without KVM gets the flags wrong after cmpxchg16b when an interrupt comes, and Linux panics in kmalloc.
	cpu := map[string]string{"kvm": "host", "tcg": "qemu64,-cx16"}[accel]
	// Beside load, the emulated timer can be late for the kernel's check of it, which then panics: no_timer_check.
	cmd := exec.CommandContext(ctx, qemu, "-accel", accel, "-cpu", cpu, "-m", m.memory, "-nic", "none", "-no-reboot",
		"-display", "none", "-monitor", "none", "-serial", "stdio", "-kernel", m.image, "-initrd", m.initramfs,
		"-append", "console=ttyS0 loglevel=1 panic=-1 no_timer_check print-fatal-signals=1 rdinit=/init "+
			unneeded+parameters)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = file, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if cmd.ProcessState != nil {
		took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		tb.Logf("the guest took %s of a processor", took.Round(time.Second))
	}
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return string(host.Read(tb, c)), err
}

// accelerator is kvm if a kernel boots with it, and tcg if not. That there is a /dev/kvm does not mean that it works.
func (m machine) accelerator(tb testing.TB) string {
	tb.Helper()
	if file, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		return "tcg"
	} else {
		file.Close()
	}
	id := host.Read(tb, "/proc/sys/kernel/random/boot_id")
	// It takes the whole time limit to find that out, so it is remembered until this machine boots again.
	known := filepath.Join(host.Cache("kernels"), "no-kvm")
	if content, err := os.ReadFile(known); err == nil && bytes.Equal(content, id) {
		return "tcg"
	}
	const limit = 15 * time.Second
	if text, _ := m.boot(tb, "kvm", limit, limit, "run=none"); strings.Contains(text, endMark) {
		return "kvm"
	}
	host.Check(tb, os.WriteFile(known, id, 0o644))
	return "tcg"
}

// section is what a guest reports about one state.
type section struct {
	state string
	steps []step
}

// parse returns what a console reports. It is an error if it does not report to the end.
func parse(text string, ended error) ([]section, error) {
	var report []section
	err := errors.New("the console is cut off: the guest has not said that it is done")
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "")) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.Contains(line, "Kernel panic"):
			return nil, fmt.Errorf("the kernel panics: %s", line)
		case strings.HasPrefix(line, stateMark):
			report = append(report, section{state: strings.TrimPrefix(line, stateMark)})
		case strings.HasPrefix(line, stepMark):
			var s step
			if err := json.Unmarshal([]byte(strings.TrimPrefix(line, stepMark)), &s); err != nil {
				return nil, fmt.Errorf("a line of the console is damaged: %w", err)
			}
			if len(report) == 0 {
				return nil, fmt.Errorf("step %q belongs to no state", s.Name)
			}
			last := &report[len(report)-1]
			last.steps = append(last.steps, s)
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
	return report, nil
}

// tail is the end of a console, for finding out why.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r", "")), "\n")
	lines = lines[max(0, len(lines)-30):]
	for i, line := range lines {
		if len(line) > 1000 {
			lines[i] = line[:1000] + "[…]"
		}
	}
	return strings.Join(lines, "\n")
}

// deathMark begins what the kernel logs of a program that died of a signal such as SIGTRAP, with its registers.
const deathMark = "potentially unexpected fatal signal "

var trap = regexp.MustCompile(`(?s)` + deathMark + `5\..*?EFLAGS: ([0-9a-f]{8})`)

// spoiled reports whether a guest says nothing about us. Under emulation, a kernel sometimes panics in its timer under
// load, before our first process runs. QEMU 7.2 can leave the trap flag set after cmpxchg8b, which 386 builds contain,
// in a program that nobody debugs. Anything else that happens once our first process has run, including a SIGTRAP
// without that flag, is ours to explain.
func spoiled(text string) bool {
	for _, died := range trap.FindAllStringSubmatch(text, -1) {
		const trapFlag = 1 << 8 // X86_EFLAGS_TF
		if flags, _ := strconv.ParseUint(died[1], 16, 32); flags&trapFlag != 0 {
			return true
		}
	}
	return !strings.Contains(text, beginMark)
}
