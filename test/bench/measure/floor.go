// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Floor is the least that a static Go program can do on the way to iptables: start, and become it.
package main

import (
	"os"
	"syscall"
)

func main() {
	if syscall.Exec(os.Args[1], os.Args[2:], os.Environ()) != nil {
		os.Exit(1)
	}
}
