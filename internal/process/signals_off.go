// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !iptables_wrapper_signals || mips || mipsle || mips64 || mips64le

// Package process passes on signals and the environment through execve(2). This build, without the tag
// iptables_wrapper_signals, can do so only as far as the Go runtime allows: see signals.go.
package process

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// LockThread keeps the calling goroutine on its thread.
func LockThread() { runtime.LockOSThread() }

// FinishStart does nothing in this build: the runtime has left nothing out.
func FinishStart() {}

// Ignored returns false: this build cannot tell.
func Ignored(unix.Signal) bool { return false }

// RestoreMask does nothing in this build.
func RestoreMask() {}

// Variable is os.Getenv.
func Variable(name string) string { return os.Getenv(name) }

// Environment returns os.Environ.
func Environment() []string { return os.Environ() }
