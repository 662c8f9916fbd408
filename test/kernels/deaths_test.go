// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// deathMark begins what the kernel logs of a program that died of a signal.
const deathMark = "potentially unexpected fatal signal "

// deaths returns the kernel's log from the first program on that died of a signal such as SIGTRAP, with its registers.
func deaths() string {
	log := make([]byte, 1<<18)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, log)
	if err != nil {
		return err.Error() + "\n"
	}
	_, after, found := strings.Cut(string(log[:n]), deathMark)
	if !found {
		return ""
	}
	return deathMark + after + "\n"
}

// trap matches what the kernel logs about a program that died of SIGTRAP, up to the flags register.
var trap = regexp.MustCompile(`(?s)` + deathMark + `5\..*?EFLAGS: ([0-9a-f]{8})`)

// spoiled reports whether a guest says nothing about us. Under emulation, a kernel sometimes panics in its timer under load,
// before our first process runs, and QEMU 7.2 sets the trap flag of a program that nobody debugs: docs/evidence/kernels.md
// shows how. Anything else that happens once our first process has run, including a SIGTRAP without that flag, is ours to explain.
func spoiled(text string) bool {
	for _, died := range trap.FindAllStringSubmatch(text, -1) {
		const trapFlag = 1 << 8 // X86_EFLAGS_TF
		if flags, _ := strconv.ParseUint(died[1], 16, 32); flags&trapFlag != 0 {
			return true
		}
	}
	return !strings.Contains(text, beginMark)
}
