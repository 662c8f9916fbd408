// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
	"github.com/iptables-wrappers/iptables-wrappers/test/rules"
)

type dumped struct{ name, v4, v6, native string }

func dumps(t *testing.T) (all []dumped) {
	t.Helper()
	read := func(name string) string {
		text, err := fs.ReadFile(rules.Programs(), name)
		host.Check(t, err)
		return string(text)
	}
	names, err := fs.Glob(rules.Programs(), "*")
	host.Check(t, err)
	for _, name := range names {
		if program, isDump := strings.CutSuffix(name, ".save"); isDump {
			all = append(all, dumped{name: program, v4: read(name), v6: read(name + "6")})
		}
		if strings.HasSuffix(name, ".nft") {
			all = append(all, dumped{name: name, native: read(name)})
		}
	}
	return all
}

// Each program of the host decides for its backend, against more rules in the other one, and is named. Nftables' own
// tables decide, too, but for certain only if legacy has no rules.
func TestHostPrograms(t *testing.T) {
	for _, d := range dumps(t) {
		for _, m := range Modes() {
			if d.native != "" && m == Legacy {
				continue
			}
			t.Run(d.name+" in "+string(m), func(t *testing.T) {
				host.Netns(t)
				if d.native != "" {
					nftScript(t, d.native)
				} else {
					host.Feed(t, d.v4, program(m, IPv4, "-restore"), "-w")
					host.Feed(t, d.v6, program(m, IPv6, "-restore"), "-w")
				}
				for _, strays := range []int{0, 300} {
					addRules(t, m.Other(), IPv4, strays)
					for _, q := range []Query{{}, {Everything: true}} {
						r := q.Ask()
						if certain := d.native == "" || strays == 0; r.Mode != m || r.Reason != HostProgram ||
							r.Conclusive != certain || !strings.Contains(r.Because, "keeps its rules in "+string(m)) {
							t.Errorf("%d strays, %+v: got %+v", strays, q, r.Decision)
						}
					}
				}
			})
		}
	}
}

// Every name is on the page, and in a dump of the real program for each of its families, or said to be in none.
func TestHostProgramNames(t *testing.T) {
	var chains [2]string
	tables := ""
	for _, d := range dumps(t) {
		chains[IPv4] += d.v4
		chains[IPv6] += d.v6
		tables += d.native
	}
	page := string(host.Read(t, "../../docs/how-it-works.md"))
	readme := string(host.Read(t, "../../test/rules/programs/README.md"))
	_, undumped, _ := strings.Cut(readme, "\nIn no dump")
	check := func(name string, dumped bool) {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%q is not in docs/how-it-works.md", name)
		}
		switch said := strings.Contains(undumped, "`"+name+"`"); {
		case !dumped && !said:
			t.Errorf("%q is in no dump in test/rules/programs: add one, or say at the end of its README.md why", name)
		case dumped && said:
			t.Errorf("%q is in a dump, and test/rules/programs/README.md says that it is in none", name)
		}
	}
	for _, f := range families {
		for _, c := range hostChains {
			check(c.name(f), strings.Contains(chains[f], "\n:"+c.name(f)+" "))
		}
	}
	for _, table := range hostTables {
		check(table.Table, strings.Contains(tables, "table "+table.Table+" {"))
	}
}

// The names prove something only where programs of the host make them: in their table and family, and not as a part of
// a name. Tables of nftables that are not theirs decide nothing, and are named.
func TestNativeTables(t *testing.T) {
	host.Netns(t)
	for _, m := range Modes() {
		host.Run(t, program(m, IPv4, ""), "-w", "-t", "nat", "-N", "DOCKER-USER")
		host.Run(t, program(m, IPv6, ""), "-w", "-N", "ufw-user-input")
		host.Run(t, program(m, IPv4, ""), "-w", "-N", "DOCKER-USER-2")
	}
	nftScript(t, "add table ip kube-proxy; add table ip6 kube-proxy")
	want := "only nftables' own tables (ip kube-proxy, ip6 kube-proxy) were found, and nft is the default"
	if r := (Query{}).Ask(); r.Mode != NFT || r.Reason != Default || r.Conclusive || r.Because != want {
		t.Errorf("got %+v", r.Decision)
	}
	nftScript(t, "add table inet docker-bridges; add table ip firewalld; add table bridge firewalld; "+
		"add chain inet docker-bridges DOCKER-USER")
	r := Query{Everything: true}.Ask()
	for _, m := range Modes() {
		for _, f := range families {
			if a := r.Of(m)[f]; a.HostChain != No || a.HostTable != No || a.Programs != nil {
				t.Errorf("%s, %s: got %+v", m, f, a)
			}
		}
	}
	v4 := []string{"inet docker-bridges", "ip firewalld", "ip kube-proxy"}
	if got := slices.Sorted(slices.Values(r.NFT[IPv4].Native)); !slices.Equal(got, v4) {
		t.Errorf("got %q", got)
	}
	if r.Reason != Default || !strings.Contains(r.Because, "(inet docker-bridges, ip firewalld and 2 more)") {
		t.Errorf("got %+v", r.Decision)
	}
}
