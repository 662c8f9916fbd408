// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Iptables-wrapper stands in for the six commands of iptables in a container. It asks the kernel which backend the host
// uses, legacy or nft, and execs that backend's program. Once the answer is certain, it points the commands at that
// program, and later calls bypass it.
//
// A call by one of the six commands never reaches main: the init function of internal/call runs it. Any other name
// starts the command line, internal/command. detect/decide.go decides, and internal/link/keep.go keeps the answer.
package main

import (
	"os"

	_ "github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/command"
)

func main() {
	os.Exit(command.Run(os.Args, os.Stdout, os.Stderr))
}
