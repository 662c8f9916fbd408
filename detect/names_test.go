// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
	"github.com/iptables-wrappers/iptables-wrappers/test/rules"
)

// dump is what a program of the host leaves behind when it has started: rules of iptables, or native tables.
type dump struct{ name, v4, v6, native string }

func dumps(t *testing.T) (all []dump) {
	t.Helper()
	files := rules.Programs()
	read := func(name string) string {
		text, err := fs.ReadFile(files, name)
		host.Check(t, err)
		return string(text)
	}
	names, err := fs.Glob(files, "*")
	host.Check(t, err)
	for _, name := range names {
		program, isDump := strings.CutSuffix(name, ".save")
		if isDump {
			all = append(all, dump{name: program, v4: read(name), v6: read(name + "6")})
		}
		if strings.HasSuffix(name, ".nft") {
			all = append(all, dump{name: name, native: read(name)})
		}
	}
	proxy, err := fs.ReadFile(rules.Nodes(), "kube-proxy-nftables.nft")
	host.Check(t, err)
	all = append(all, dump{name: "kube-proxy", native: string(proxy)})
	if len(all) < 12 {
		t.Fatalf("only %d dumps", len(all))
	}
	return all
}

// Each program of the host decides for its backend, against more rules in the other one, and is named.
func TestHostPrograms(t *testing.T) {
	for _, d := range dumps(t) {
		for _, b := range []Backend{NFT, Legacy} {
			if d.native != "" && b == Legacy {
				continue
			}
			t.Run(d.name+" in "+string(b), func(t *testing.T) {
				host.Netns(t)
				if d.native != "" {
					host.Feed(t, d.native, "nft", "-f", "-")
				} else {
					host.Feed(t, d.v4, program(b, IPv4, "-restore"), "-w")
					host.Feed(t, d.v6, program(b, IPv6, "-restore"), "-w")
				}
				addRules(t, b.Other(), IPv4, 300)
				r := ask(t, "")
				if r.Backend != b || r.Reason != HostProgram || !r.Certain || len(r.Evidence.Of(b).Names) == 0 {
					t.Errorf("got %+v", r)
				}
				said, _, _ := strings.Cut(d.name, "-")
				said = strings.TrimSuffix(said, ".nft")
				said = map[string]string{"netavark": "podman"}[said] + said
				named := r.Evidence.Of(b).Names[0].Program
				if !strings.Contains(said, strings.ToLower(named[:3])) || !strings.Contains(r.Because(), named) {
					t.Errorf("%s is named %s: %s", d.name, named, r.Because())
				}
			})
		}
	}
}

// Every name is on the page, and in a dump of the real program for each of its families, or said to be in none.
func TestHostNames(t *testing.T) {
	all := ""
	for _, d := range dumps(t) {
		all += d.v4 + d.v6 + d.native
	}
	page := string(host.Read(t, "../docs/how-it-works.md"))
	readme := string(host.Read(t, "../test/rules/programs/README.md"))
	_, undumped, found := strings.Cut(readme, "\nIn no dump")
	if !found {
		t.Fatal("README.md does not say what is in no dump")
	}
	for _, n := range knownNames {
		if n.Program == "kubelet" {
			continue
		}
		text := n.Chain
		line := "\n:" + n.Chain + " "
		if n.Chain == "" {
			text = n.Table
			line = "table " + n.Table + " {"
		}
		if !strings.Contains(page, "`"+text+"`") {
			t.Errorf("%q is not in docs/how-it-works.md", text)
		}
		dumped := strings.Contains(all, line)
		said := strings.Contains(undumped, "`"+text+"`")
		switch {
		case !dumped && !said:
			t.Errorf("%q is in no dump in test/rules/programs: add one, or say at the end of its README.md why", text)
		case dumped && said:
			t.Errorf("%q is in a dump, and test/rules/programs/README.md says that it is in none", text)
		}
	}
}

// Each name is found where it is, in each family that it can be in, and decides.
func TestEachName(t *testing.T) {
	for _, k := range byName {
		for n := range namesOf(k) {
			backends := []Backend{NFT, Legacy}
			if n.Chain == "" {
				backends = backends[:1]
			}
			for _, b := range backends {
				t.Run(string(b)+" "+n.nftTable()+" "+n.Chain, func(t *testing.T) {
					host.Netns(t)
					if n.Chain == "" {
						addNative(t, "add table "+n.Table)
					} else {
						addChain(t, b, n.Family, n.Table, n.Chain)
					}
					r := ask(t, "")
					if r.Backend != b || r.Reason != k || !r.Certain ||
						!slices.Contains(r.Evidence.Of(b).Names, n) || len(r.Evidence.Of(b.Other()).Names) > 0 {
						t.Errorf("got %+v", r)
					}
				})
			}
		}
	}
}

// A native table of family inet is in both families, any other in its own. A chain can be in both.
func TestNamesOf(t *testing.T) {
	for _, n := range knownNames {
		native := map[string][2]bool{"ip": {true, false}, "ip6": {false, true}, "inet": {true, true}}
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
		for _, k := range byName {
			var got [2]bool
			for _, f := range families {
				n.Family = f
				got[f] = slices.Contains(slices.Collect(namesOf(k)), n)
			}
			if k == of && got != want || k != of && got != [2]bool{} {
				t.Errorf("%+v, reason %s: got %v, want %v", n, k, got, want)
			}
		}
	}
}
