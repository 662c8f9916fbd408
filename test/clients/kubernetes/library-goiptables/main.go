// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Library-goiptables is an example of docs/library.md: go-iptables with the host's backend.
package main

import (
	"log"

	"github.com/coreos/go-iptables/iptables"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// hostIPTables returns a client that uses the host's backend.
func hostIPTables(protocol iptables.Protocol, command string) (*iptables.IPTables, error) {
	result, err := detect.Host("")
	if err != nil {
		log.Print(err) // what could not be asked; the result is what the rest shows
	}
	program, err := exec.Find(result.Backend, command)
	if err != nil {
		return nil, err
	}
	return iptables.New(iptables.IPFamily(protocol), iptables.Path(program.Path))
}

func main() {
	for command, protocol := range map[string]iptables.Protocol{"iptables": iptables.ProtocolIPv4,
		"ip6tables": iptables.ProtocolIPv6} {
		client, err := hostIPTables(protocol, command)
		if err != nil {
			log.Fatal(err)
		}
		if err := client.AppendUnique("filter", "INPUT", "-p", "tcp", "--dport", "8443", "-j", "ACCEPT"); err != nil {
			log.Fatal(err)
		}
	}
}
