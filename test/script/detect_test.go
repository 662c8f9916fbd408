// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Where the host shows nothing, a call also goes by what is installed, and detect.Host does not: its comment says so. A
// query that is told so agrees with the call.
func TestHostBesideCall(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "iptables-wrapper", "install")
	agree := func(r detect.Result) bool {
		t.Helper()
		kind := map[detect.Mode]string{detect.NFT: "(nf_tables)", detect.Legacy: "(legacy)"}[r.Mode]
		return strings.HasSuffix(host.Run(t, "iptables", "--version"), kind+"\n")
	}
	if r := detect.Host(); !agree(r) {
		t.Errorf("nothing on the host: Host says %v", r)
	}
	host.Run(t, "rm", "/usr/sbin/xtables-nft-multi")
	if r := detect.Host(); r.Mode != detect.NFT || agree(r) {
		t.Errorf("legacy alone is installed: Host says %v", r)
	}
	if r := (detect.Query{Installed: detect.Legacy}).Run(); !agree(r) {
		t.Errorf("legacy alone is installed: a query says %v", r)
	}
	host.Run(t, "iptables-legacy", "-A", "INPUT", "-j", "ACCEPT")
	if r := detect.Host(); !agree(r) {
		t.Errorf("a rule in legacy: Host says %v", r)
	}
}
