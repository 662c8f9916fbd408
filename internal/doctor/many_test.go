// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// A cluster with many services has two chains for each of them on every node. Where each chain is compared with each
// rule, this does not end before go test loses patience.
func TestManyChains(t *testing.T) {
	const services = 30_000
	var names, jumps strings.Builder
	chains := []string{"KUBE-SERVICES"}
	for i := range services {
		service, endpoint := fmt.Sprintf("KUBE-SVC-%d", i), fmt.Sprintf("KUBE-SEP-%d", i)
		chains = append(chains, service, endpoint)
		fmt.Fprintf(&names, ":%s - [0:0]\n:%s - [0:0]\n", service, endpoint)
		fmt.Fprintf(&jumps, "-A KUBE-SERVICES -p tcp -m tcp --dport %d -j %s\n", i, service)
		fmt.Fprintf(&jumps, "-A %s -j %s\n-A %s -p tcp -j ACCEPT\n", service, endpoint, endpoint)
	}
	text := "*nat\n:OUTPUT ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n" + names.String() +
		"-A OUTPUT -j KUBE-SERVICES\n" + jumps.String()
	r := healthy()
	rules(0, 1+3*services, chains...)(&r)
	rules(2, 1+3*services, chains...)(&r)
	r.saved = parseSaved(detect.IPv4, text)
	r.savedHost = r.saved
	r.Diagnose()
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Fix, "too many for one command") {
		t.Errorf("got %d findings", len(r.Findings))
	}
}
