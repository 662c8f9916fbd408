// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Flannel writes the rules of a node of flannel with flannel's own package, and restores them every second until it is
// killed. Its arguments are the number of the node's subnet, and of the one that it had before. Without arguments, it
// cleans up.
package main

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"os"

	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/lease"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
)

func main() {
	ctx := context.Background()
	manager := new(iptables.IPTablesManager)
	if len(os.Args) == 1 {
		if err := manager.CleanUp(ctx); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := manager.Init(ctx); err != nil {
		log.Fatal(err)
	}
	ipv4, ipv6 := network4("10.244.0.0/16"), network6("2001:db8:244::/48")
	own4, own6 := subnets(os.Args[1])
	var before4 ip.IP4Net
	before6 := ip.IP6Net{IP: ip.FromIP16Bytes(nil)}
	if len(os.Args) > 2 {
		before4, before6 = subnets(os.Args[2])
	}
	own := &lease.Lease{EnableIPv4: true, EnableIPv6: true, Subnet: own4, IPv6Subnet: own6}
	err := manager.SetupAndEnsureMasqRules(ctx, ipv4, before4, ipv4, ipv6, before6, ipv6, own, 1, false)
	if err != nil {
		log.Fatal(err)
	}
	manager.SetupAndEnsureForwardRules(ctx, ipv4, ipv6, 1)
	select {}
}

func subnets(number string) (ip.IP4Net, ip.IP6Net) {
	return network4(fmt.Sprintf("10.244.%s.0/24", number)), network6(fmt.Sprintf("2001:db8:244:%s::/64", number))
}

func network4(text string) ip.IP4Net {
	p := netip.MustParsePrefix(text)
	return ip.IP4Net{IP: ip.FromBytes(p.Addr().AsSlice()), PrefixLen: uint(p.Bits())}
}

func network6(text string) ip.IP6Net {
	p := netip.MustParsePrefix(text)
	return ip.IP6Net{IP: ip.FromIP16Bytes(p.Addr().AsSlice()), PrefixLen: uint(p.Bits())}
}
