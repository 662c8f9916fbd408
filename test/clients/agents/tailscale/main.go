// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Tailscale writes the rules of Tailscale's router with Tailscale's own package. With the argument "down", it removes
// them.
package main

import (
	"errors"
	"log"
	"net/netip"
	"os"

	"tailscale.com/util/linuxfw"
)

const tun = "tailscale0"

func main() {
	log.SetFlags(0)
	firewall, err := linuxfw.New(log.Printf, "iptables")
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 1 && os.Args[1] == "down" {
		err = down(firewall)
	} else {
		err = up(firewall)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func up(f linuxfw.NetfilterRunner) error {
	for _, step := range []func() error{f.AddChains, func() error { return f.AddBase(tun) }, f.AddHooks,
		f.AddSNATRule} {
		if err := step(); err != nil {
			return err
		}
	}
	return errors.Join(f.AddLoopbackRule(netip.MustParseAddr("100.64.0.1")),
		f.AddLoopbackRule(netip.MustParseAddr("fd7a:115c:a1e0::1")),
		f.AddStatefulRule(tun), f.AddMagicsockPortRule(41641, "udp4"), f.AddMagicsockPortRule(41641, "udp6"),
		f.ClampMSSToPMTU(tun, netip.MustParseAddr("100.64.0.2")))
}

func down(f linuxfw.NetfilterRunner) error {
	return errors.Join(f.DelStatefulRule(tun), f.DelSNATRule(), f.DelHooks(log.Printf), f.DelBase(), f.DelChains())
}
