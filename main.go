// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Iptables-wrapper stands in for the six commands of iptables in a container. At the first call it asks the kernel
// which backend the host uses, legacy or nft, makes the commands point to that backend's program, and execs it.
//
// Called by one of the six names, it never gets here: the init function of internal/call runs the program, before main.
// The decision is the table in detect/decide.go. What is stored, and when, is internal/link/keep.go.
//
// Called by any other name it is a command line: see internal/command.
package main

import (
	"os"

	_ "github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/command"
)

func main() {
	os.Exit(command.Run(os.Args, os.Stdout, os.Stderr))
}
