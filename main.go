// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Iptables-wrapper stands in for the six commands of iptables in a container. It asks the kernel which backend the host
// uses, legacy or nft, and execs that backend's program. Once the answer is certain, it points the commands at that
// program, and later calls bypass it.
//
// A call by one of the six names never reaches main: the init function of internal/call runs the program before. The
// decision is the table in detect/decide.go; internal/link/keep.go keeps the answer.
//
// A call by any other name is a command line: see internal/command.
package main

import (
	"os"

	_ "github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/command"
)

func main() {
	os.Exit(command.Run(os.Args, os.Stdout, os.Stderr))
}
