// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Istio-iptables is the command of that name which Istio's pilot-agent has.
package main

import (
	"os"

	"istio.io/istio/pkg/log"
	"istio.io/istio/tools/istio-iptables/pkg/cmd"
)

func main() {
	if err := cmd.GetCommand(log.DefaultOptions()).Execute(); err != nil {
		os.Exit(1)
	}
}
