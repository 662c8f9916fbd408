// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Kubelet creates the chains that Kubernetes' kubelet creates, with Kubernetes' own package: the hint, and the
// canaries, which it monitors and restores.
package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/pkg/util/iptables"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

func run() error {
	clients := iptables.NewBestEffort()
	if len(clients) != 2 {
		return fmt.Errorf("iptables is there for %d families, want 2", len(clients))
	}
	for family, client := range clients {
		if err := mark(client); err != nil {
			return fmt.Errorf("%s: %w", family, err)
		}
		tables := []iptables.Table{iptables.TableMangle, iptables.TableNAT, iptables.TableFilter}
		go client.Monitor("KUBE-KUBELET-CANARY", tables, func() { _ = mark(client) }, time.Second, wait.NeverStop)
	}
	fmt.Println("ready")
	return nil
}

func mark(client iptables.Interface) error {
	if _, err := client.EnsureChain(iptables.TableMangle, "KUBE-IPTABLES-HINT"); err != nil {
		return err
	}
	if client.IsIPv6() {
		return nil
	}
	if _, err := client.EnsureChain(iptables.TableFilter, "KUBE-FIREWALL"); err != nil {
		return err
	}
	for _, chain := range []iptables.Chain{iptables.ChainInput, iptables.ChainOutput} {
		_, err := client.EnsureRule(iptables.Prepend, iptables.TableFilter, chain, "-j", "KUBE-FIREWALL")
		if err != nil {
			return err
		}
	}
	_, err := client.EnsureRule(iptables.Append, iptables.TableFilter, "KUBE-FIREWALL",
		"--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8",
		"-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP")
	return err
}
