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
	"github.com/iptables-wrappers/iptables-wrappers/test/hostprograms"
)

// dumped is what a program of the host leaves behind: rules for iptables, or for nft.
type dumped struct {
	name     string
	v4, v6   string
	nftables string
}

func dumps(tb testing.TB) (all []dumped) {
	tb.Helper()
	read := func(name string) string {
		text, err := hostprograms.Files.ReadFile(name)
		host.Check(tb, err)
		return string(text)
	}
	names, err := fs.Glob(hostprograms.Files, "*")
	host.Check(tb, err)
	for _, name := range names {
		if program, isDump := strings.CutSuffix(name, ".save"); isDump {
			all = append(all, dumped{name: program, v4: read(name), v6: read(name + "6")})
		}
		if program, isDump := strings.CutSuffix(name, ".nft"); isDump {
			all = append(all, dumped{name: program + ", nftables", nftables: read(name)})
		}
	}
	return all
}

// load makes the rules of a program in a backend.
func (d dumped) load(tb testing.TB, backend Mode) {
	tb.Helper()
	if d.nftables != "" {
		host.Feed(tb, d.nftables, "nft", "-f", "-")
		return
	}
	host.Feed(tb, d.v4, program(backend, IPv4, "-restore"), "-w", "--noflush")
	host.Feed(tb, d.v6, program(backend, IPv6, "-restore"), "-w", "--noflush")
}

// backends are those that the program can use.
func (d dumped) backends() []Mode {
	if d.nftables != "" {
		return []Mode{NFT}
	}
	return []Mode{NFT, Legacy}
}

// Each program of the host decides for its backend, against more rules in the other one, and is named.
func TestHostPrograms(t *testing.T) {
	for _, d := range dumps(t) {
		for _, backend := range d.backends() {
			t.Run(d.name+" in "+string(backend), func(t *testing.T) {
				host.Netns(t)
				d.load(t, backend)
				other := NFT
				if backend == NFT && d.nftables == "" {
					other = Legacy
				}
				bans := "*filter\n:f2b-sshd - [0:0]\n-A INPUT -j f2b-sshd\n" +
					strings.Repeat("-A f2b-sshd -s 192.0.2.1 -j DROP\n", 300) + "COMMIT\n"
				host.Feed(t, bans, program(other, IPv4, "-restore"), "-w", "--noflush")
				for _, q := range []Query{{}, {Everything: true}} {
					r := q.Run()
					if r.Mode != backend || !r.Conclusive || r.Reason != HostProgram && d.nftables == "" {
						t.Errorf("%+v: got %v, conclusive %v", q, r, r.Conclusive)
					}
				}
			})
		}
	}
}

// Every name is on the page, and in a dump of the real program for each of its families, or said to be in none.
func TestHostProgramNames(t *testing.T) {
	chains := map[Family]string{}
	tables := ""
	for _, d := range dumps(t) {
		chains[IPv4] += d.v4
		chains[IPv6] += d.v6
		tables += d.nftables
	}
	page := string(host.Read(t, "../docs/how-it-works.md"))
	readme := string(host.Read(t, "../test/hostprograms/README.md"))
	_, undumped, _ := strings.Cut(readme, "\nIn no dump")
	check := func(name string, dumped bool) {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%q is not in docs/how-it-works.md", name)
		}
		switch said := strings.Contains(undumped, "`"+name+"`"); {
		case !dumped && !said:
			t.Errorf("%q is in no dump in test/hostprograms: add one, or say at the end of its README.md why", name)
		case dumped && said:
			t.Errorf("%q is in a dump, and test/hostprograms/README.md says that it is in none", name)
		}
	}
	for _, f := range families {
		for _, c := range hostChainsOf(f) {
			check(c.chain, strings.Contains(chains[f], "\n:"+c.chain+" "))
		}
	}
	for _, table := range hostTables {
		check(table.table, strings.Contains(tables, "table "+table.table+" {"))
	}
}

// Nftables' own tables are certain evidence unless legacy has rules; then they make a guess.
func TestHostTables(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table inet firewalld; add table ip docker-bridges; add table ip mine")
	r := Host()
	if r.Mode != NFT || r.Reason != HostProgram || !r.Conclusive ||
		r.Because() != "firewalld keeps its rules in nft: table inet firewalld" {
		t.Errorf("got %v, conclusive %v", r, r.Conclusive)
	}
	host.Run(t, "iptables-legacy", "-w", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE")
	r = Host()
	if r.Mode != NFT || r.Reason != HostProgram || r.Conclusive ||
		!strings.HasPrefix(r.Uncertainty(), "legacy has rules too (1 rule)") {
		t.Errorf("a rule in legacy: got %v, conclusive %v, %q", r, r.Conclusive, r.Uncertainty())
	}
	host.Run(t, "iptables-nft", "-A", "INPUT", "-m", "comment", "--comment", "x")
	if r := Host(); r.Mode != NFT || r.Reason != RuleCount || !r.Conclusive {
		t.Errorf("as many in nft: got %v, conclusive %v", r, r.Conclusive)
	}
	host.Run(t, "iptables-legacy", "-w", "-N", "DOCKER-USER")
	for _, q := range []Query{{}, {Everything: true}} {
		r := q.Run()
		both := "firewalld keeps its rules in nft: table inet firewalld, but Docker keeps its rules in legacy: chain " +
			"DOCKER-USER in filter"
		if r.Conclusive || r.Uncertainty() != both || !slices.Contains(r.Conflicts, HostProgramsInBoth) {
			t.Errorf("both: got %v, conclusive %v, %q, %v", r, r.Conclusive, r.Uncertainty(), r.Conflicts)
		}
	}
}

// The names prove something only where programs of the host make them: in their table and family, and not as a part of
// a name.
func TestHostProgramsElsewhere(t *testing.T) {
	host.Netns(t)
	for _, backend := range []Mode{NFT, Legacy} {
		host.Run(t, program(backend, IPv4, ""), "-w", "-t", "nat", "-N", "DOCKER-USER")
		host.Run(t, program(backend, IPv6, ""), "-w", "-N", "ufw-user-input")
		host.Run(t, program(backend, IPv4, ""), "-w", "-N", "DOCKER-USER-2")
	}
	nftScript(t, "add table inet docker-bridges; add table ip firewalld; add table bridge firewalld; "+
		"add table ip kube-proxy; add table ip6 kube-proxy; add chain inet docker-bridges DOCKER-USER")
	r := Query{Everything: true}.Run()
	for _, e := range r.Evidence {
		if e.HostChain != No || e.HostTable != No || e.Programs != nil {
			t.Errorf("got %+v", e)
		}
	}
	if r.Reason != Default {
		t.Errorf("got %v", r)
	}
}

// At first, legacy's tables are read only if they are small. Before a guess they are read all the same, so that a call
// and detect, which reads more from the start, agree on the backend.
func TestHostProgramInLargeTable(t *testing.T) {
	rules := func(chain string, n int) string {
		return "*filter\n:" + chain + " - [0:0]\n" + strings.Repeat("-A "+chain+" -s 192.0.2.1 -m comment --comment x "+
			"-j DROP\n", n) + "COMMIT\n"
	}
	const native = "add table inet firewalld"
	for _, test := range []struct {
		doc         string
		native      string
		nft, legacy string
		mode        Mode
		reason      Reason
		conclusive  bool
	}{
		{
			doc: "a program in legacy, more in nft", nft: rules("MINE", 2000), legacy: rules("DOCKER-USER", 1500),
			mode: Legacy, reason: HostProgram, conclusive: true,
		},
		{
			doc: "a program in legacy, fewer in nft", nft: rules("MINE", 1000), legacy: rules("DOCKER-USER", 1500),
			mode: Legacy, reason: RuleCount, conclusive: true,
		},
		{
			doc: "none, more in nft", nft: rules("MINE", 2000), legacy: rules("MINE", 1500),
			mode: NFT, reason: RuleCount, conclusive: true,
		},
		{
			doc: "a program in nft", nft: rules("DOCKER-USER", 9), legacy: rules("MINE", 1500),
			mode: NFT, reason: HostProgram, conclusive: true,
		},
		{
			doc: "a program in nft, a small table in legacy", nft: rules("DOCKER-USER", 9), legacy: rules("MINE", 100),
			mode: NFT, reason: HostProgram, conclusive: true,
		},
		{
			doc: "programs in both", nft: rules("DOCKER-USER", 9), legacy: rules("DOCKER-USER", 1500),
			mode: Legacy, reason: RuleCount, conclusive: false,
		},
		{
			doc: "a native table, a program in legacy", native: native, legacy: rules("DOCKER-USER", 700),
			mode: Legacy, reason: RuleCount, conclusive: false,
		},
		{
			doc: "a native table, none in legacy", native: native, legacy: rules("MINE", 700),
			mode: NFT, reason: HostProgram, conclusive: false,
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			nftScript(t, test.native)
			host.Feed(t, test.nft, "iptables-nft-restore")
			host.Feed(t, test.legacy, "iptables-legacy-restore", "-w")
			r := Host()
			if r.Mode != test.mode || r.Reason != test.reason || r.Conclusive != test.conclusive {
				t.Errorf("got %v, conclusive %v, %s", r, r.Conclusive, r.Uncertainty())
			}
			counted := r.Of(NFT, IPv4).Rules != Count{0, Unbounded}
			byChain := r.Mode == NFT && r.Reason == HostProgram && test.native == ""
			if byChain && counted {
				t.Errorf("rules were counted: %+v", r.Of(NFT, IPv4))
			}
			all := Query{Everything: true}.Run()
			if r.Mode != all.Mode || r.Conclusive != all.Conclusive {
				t.Errorf("a call: %v, conclusive %v; detect: %v, conclusive %v", r, r.Conclusive, all, all.Conclusive)
			}
		})
	}
}

// Beyond what a call reads of a table, whether legacy has a program of the host is not known.
func TestHostProgramBeyondBound(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-N", "DOCKER-USER")
	host.Feed(t, "*filter\n:MINE - [0:0]\n"+strings.Repeat("-A MINE -s 192.0.2.1 -j DROP\n", 1500)+"COMMIT\n",
		"iptables-legacy-restore", "-w")
	small := forCall
	small.table = 128 << 10
	r := proberWithin(t, small).run()
	if r.Mode != NFT || r.Reason != HostProgram || r.Conclusive || r.Of(Legacy, IPv4).HostChain != Unknown {
		t.Errorf("got %v, conclusive %v, %v", r, r.Conclusive, r.Of(Legacy, IPv4).HostChain)
	}
	if got := r.Of(NFT, IPv4).Rules; got != (Count{0, Unbounded}) {
		t.Errorf("rules were counted, which cannot change the answer: %v", got)
	}
}

// Nobody who has kubelet's chains, or a memory, is asked for programs; where a chain of one decides, no rule is
// counted.
func TestHostProgramsOnlyWhereNeeded(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-N", "DOCKER-USER")
	host.Run(t, "iptables-nft", "-A", "INPUT", "-j", "DOCKER-USER")
	if e := Host().Of(NFT, IPv4); e.HostChain != Yes || e.Rules != (Count{0, Unbounded}) {
		t.Errorf("got %+v: were rules counted?", e)
	}
	if e := (Query{Remembered: certain(Legacy)}).Run().Of(NFT, IPv4); e.HostChain != NotAsked {
		t.Errorf("remembered: got %+v", e)
	}
	host.Run(t, "iptables-nft", "-t", mangle, "-N", CanaryChain)
	if e := Host().Of(NFT, IPv4); e.HostChain != NotAsked {
		t.Errorf("canary: got %+v", e)
	}
}

// Kubelet's hint may appear while programs of the host are looked for: it is asked for once more.
func TestHintAfterHostProgram(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-N", "DOCKER-USER")
	p := newProber(Query{})
	defer p.close()
	p.between = func() {
		host.Run(t, "sh", "-c", "iptables-legacy -w -t mangle -N "+HintChain+" 2>&1 || true")
	}
	if r := p.run(); r.Mode != Legacy || r.Reason != KubeletHint || !r.Conclusive {
		t.Errorf("got %v, conclusive %v", r, r.Conclusive)
	}
}
