// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
	"github.com/iptables-wrappers/iptables-wrappers/test/rules"
)

// nftName is a marker as nft prints it: "ip filter DOCKER-USER", "ip6 kube-proxy".
func (m Marker) nftName() string {
	if m.Chain == "" {
		return m.Table
	}
	return map[Family]string{IPv4: "ip ", IPv6: "ip6 "}[m.Family] + m.Table + " " + m.Chain
}

// Each dump of a program of the host decides for its backend, against more rules in the other one, and has just the
// markers that its first line says. One without markers decides nothing.
func TestHostPrograms(t *testing.T) {
	for _, d := range rules.Dumps() {
		for _, b := range []Backend{NFT, Legacy} {
			isNative := strings.HasSuffix(d.File, ".nft")
			if isNative && b == Legacy {
				continue
			}
			t.Run(d.File+" in "+string(b), func(t *testing.T) {
				host.Netns(t)
				load := []string{"nft", "-f", "-"}
				if !isNative {
					family := map[bool]Family{false: IPv4, true: IPv6}[strings.HasSuffix(d.File, "6")]
					load = []string{program(b, family, "-restore"), "-w"}
				}
				host.Feed(t, d.Text, load[0], load[1:]...)
				addRules(t, b.Other(), IPv4, 300)
				r := ask(t, "")
				if len(d.Markers) == 0 {
					if r.Reason != RuleCount {
						t.Errorf("got %+v", r)
					}
					return
				}
				if r.Backend != b || r.Reason != HostProgram || !r.Certain {
					t.Fatalf("got %+v", r)
				}
				var names []string
				for _, n := range r.Evidence.Of(b).Markers {
					names = append(names, strings.TrimSpace(n.Table+" "+n.Chain))
				}
				if slices.Sort(names); !slices.Equal(names, d.Markers) {
					t.Errorf("it has %q, and its first line says %q", names, d.Markers)
				}
				named := r.Evidence.Of(b).Markers[0].Program
				said := map[string]string{"podman": "Podman", "cni": "CNI", "crio": "CRI-O", "kube": "kube-proxy",
					"nixos": "NixOS", "oracle": "Oracle", "proxmox": "Proxmox"}[d.Program]
				if !strings.Contains(strings.ToLower(named), strings.ToLower(cmp.Or(said, d.Program))) {
					t.Errorf("its markers are those of %s in detect/markers.go: begin the file's name with that, in "+
						"small letters, or add what it begins with to the list above", named)
				}
				if !strings.Contains(r.Because(), named) {
					t.Errorf("%q does not name %s", r.Because(), named)
				}
			})
		}
	}
}

// Every marker is in a dump in test/rules/programs, and on the page. Every marker of a dump is asked for, and every
// dump is in the list of dumps.
func TestHostMarkers(t *testing.T) {
	howItWorks := string(host.Read(t, "../docs/how-it-works.md"))
	var known []string
	for _, n := range knownMarkers {
		if n.Program == "kubelet" {
			continue
		}
		known = append(known, strings.TrimSpace(n.Table+" "+n.Chain))
		if text := cmp.Or(n.Chain, n.Table); !strings.Contains(howItWorks, "`"+text+"`") {
			t.Errorf("add a line for `%s` to docs/how-it-works.md", text)
		}
	}
	list := string(host.Read(t, "../test/rules/programs/README.md"))
	for _, d := range rules.Dumps() {
		if stem := strings.TrimSuffix(d.File, path.Ext(d.File)); !strings.Contains(list, stem) {
			t.Errorf("add a line for %s to test/rules/programs/README.md: what made it", stem)
		}
	}
	dumped := rules.Markers()
	for _, name := range known {
		if !slices.Contains(dumped, name) {
			t.Errorf("no dump in test/rules/programs has %q in its first line: add one", name)
		}
	}
	for _, name := range dumped {
		if !slices.Contains(known, name) {
			t.Errorf("a dump in test/rules/programs has %q in its first line: add it to detect/markers.go", name)
		}
	}
}

// A native table is in its own family. A chain can be in both.
func TestMarkersOf(t *testing.T) {
	for _, n := range knownMarkers {
		native := map[string][2]bool{"ip": {true, false}, "ip6": {false, true}}
		family, _, _ := strings.Cut(n.Table, " ")
		want := native[family]
		if n.Chain != "" {
			want = [2]bool{true, true}
		}
		kindOf := map[string]Reason{hintChain: KubeletHint, canaryChain: KubeletCanary}
		of, isKubelets := kindOf[n.Chain]
		if !isKubelets {
			of = HostProgram
		}
		for _, k := range byMarker {
			var got [2]bool
			for _, f := range families {
				n.Family = f
				got[f] = slices.Contains(slices.Collect(markersOf(k)), n)
			}
			if k == of && got != want || k != of && got != [2]bool{} {
				t.Errorf("%+v, reason %s: got %v, want %v", n, k, got, want)
			}
		}
	}
}
