// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Printer stands in for iptables where a test is about what reaches it: it writes its arguments and its environment to
// standard output, as the kernel keeps them.
package main

import "os"

func main() {
	for _, file := range []string{"/proc/self/cmdline", "/proc/self/environ"} {
		content, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		os.Stdout.Write(append(content, "\x00end\x00"...))
	}
}
