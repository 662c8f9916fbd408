// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !iptables_wrapper_signals || mips || mipsle || mips64 || mips64le

package exec

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// LockThread keeps the calling goroutine on its thread.
func LockThread() { runtime.LockOSThread() }

// ReleaseSignals does nothing in a build by plain "go install": see inherited.go.
func ReleaseSignals() {}

// Ignored is not known in such a build.
func Ignored(unix.Signal) bool { return false }

func restoreSignals() {}

func environment() []string { return os.Environ() }
