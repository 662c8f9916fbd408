// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The lines in docs/install.md for agents that enter Pods: each call asks, and nothing is kept, neither on a writable
// root nor on a read-only one.
func TestStraightLinks(t *testing.T) {
	page := string(host.Read(t, top+"/docs/install.md"))
	lines := regexp.MustCompile("(?s)### Agents that enter Pods\n.*?```dockerfile\n(.*?)```").FindStringSubmatch(page)
	if lines == nil {
		t.Fatal("docs/install.md has no lines for agents that enter Pods")
	}
	text := strings.ReplaceAll(lines[1], "--from=iptables-wrapper ", "--from="+base(t, "iptables-wrapper")+" ")
	i := built{named(t, "debian (trixie)"), build(t, "straight", dockerfile(t, "FROM "+base(t, "debian:trixie"),
		"RUN apt-get update && apt-get install --yes --no-install-recommends iptables", text))}
	const script = "version; ls /dev | grep -c iptables; leads; version"
	for _, backend := range backends {
		for _, root := range []string{"--read-only=false", "--read-only"} {
			n := newNode(t, backend)
			got := i.right(t, i.run(t, "", script, rights(n, root)...), backend, version(backend), "0")
			if got != eachCall {
				t.Errorf("%s %s: got %s, want %s", backend, root, got, eachCall)
			}
		}
	}
}
