// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// read returns all tables, by name as nft has it, and legacy's with "legacy" before.
func read(t *testing.T) map[string]Table {
	t.Helper()
	tables, errNFT, errLegacy := Read(true)
	host.Check(t, errors.Join(errNFT, errLegacy))
	all := map[string]Table{}
	for _, table := range tables {
		name := table.Family + " " + table.Name
		if table.Backend == detect.Legacy {
			name = "legacy " + name
		}
		all[name] = table
	}
	return all
}

// The same rules are counted alike in both backends and families.
func TestIptables(t *testing.T) {
	const lines = `*nat
:DOCKER_OUTPUT - [0:0]
:DOCKER_POSTROUTING - [0:0]
:KUBE-FIREWALL - [0:0]
-A OUTPUT -j DOCKER_OUTPUT
-A POSTROUTING -j DOCKER_POSTROUTING
-A KUBE-FIREWALL -j NETMAP --to WIDE
-A DOCKER_OUTPUT -p tcp -j DNAT --to-destination :4000
-A DOCKER_OUTPUT -p udp -j DNAT --to-destination :4001
-A DOCKER_POSTROUTING -p tcp -j SNAT --to-source :53
-A PREROUTING -p tcp -j DNAT --to-destination :1
-A PREROUTING -p tcp -j REDIRECT --to-ports 1
-A POSTROUTING -j MASQUERADE
COMMIT
*mangle
-A PREROUTING -p tcp -j TPROXY --on-port 1
-A PREROUTING -p tcp -j MARK --set-mark 1
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:EMPTY - [0:0]
:KUBE-FIREWALL - [0:0]
:DOCKER_OUTPUT - [0:0]
-A INPUT -j DROP
-A INPUT -j KUBE-FIREWALL
-A INPUT -g EMPTY
-A INPUT
-A INPUT -j ACCEPT
-A KUBE-FIREWALL -j DROP
-A DOCKER_OUTPUT -m comment --comment "-j DROP" -j RETURN
-A DOCKER_OUTPUT -j NFQUEUE --queue-bypass
-A DOCKER_OUTPUT -j NFQUEUE
-A DOCKER_OUTPUT -p tcp -j REJECT --reject-with tcp-reset
-A DOCKER_OUTPUT -j LAST
COMMIT
`
	host.Netns(t)
	lasts := map[string]string{"nft": "DROP", "legacy": "QUEUE"} // iptables-nft has no QUEUE
	for prefix, program := range map[string]string{"": "nft", "legacy ": "legacy"} {
		for family, wide := range map[string]string{"ip": "10.0.0.0/8", "ip6": "fd00::/64"} {
			text := strings.NewReplacer("WIDE", wide, "LAST", lasts[program]).Replace(lines)
			host.Feed(t, text, family+"tables-"+program+"-restore")
			all := read(t)
			for name, want := range map[string]string{
				"nat":    "9 rules, 5 of DNS, 3 act, [DOCKER_OUTPUT DOCKER_POSTROUTING KUBE-FIREWALL], []",
				"mangle": "2 rules, 0 of DNS, 1 act, [], []",
				"filter": "11 rules, 0 of DNS, 4 act, [DOCKER_OUTPUT EMPTY KUBE-FIREWALL], [{INPUT DROP}]",
			} {
				got := all[prefix+family+" "+name]
				slices.Sort(got.Chains)
				text := fmt.Sprintf("%d rules, %d of DNS, %d act, %v, %v", got.Rules, got.DNS, got.Acts, got.Chains,
					got.Policies)
				if text != want || got.NFTMade != 0 || got.More || got.Native || got.Wrong != nil {
					t.Errorf("%s%s %s: got %s, %+v", prefix, family, name, text, got)
				}
			}
		}
	}
}

// What nft has made: rules in iptables' tables, and what iptables needs there; native tables, whose names and those of
// their chains are iptables' too.
func TestNFT(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-A", "INPUT", "-j", "ACCEPT")
	host.Run(t, "iptables-nft", "-t", "mangle", "-A", "OUTPUT", "-j", "MARK", "--set-mark", "1")
	host.Feed(t, `
add rule ip filter INPUT drop
add rule ip filter INPUT counter ct state new reject
add chain ip filter mine { type filter hook input priority 7; policy drop; }
add rule ip filter mine counter drop
add chain ip filter OUTPUT { type filter hook output priority 0; policy drop; }
table ip raw { flags dormant; chain PREROUTING { drop; }; chain OUTPUT { type filter hook output priority -299; }; }
table ip nat {
	chain PREROUTING { type nat hook prerouting priority -100; dnat to 192.0.2.1; redirect; }
	chain POSTROUTING { type nat hook postrouting priority 100; snat to 192.0.2.1; masquerade; }
	chain INPUT { type filter hook input priority 100; }
}
table ip6 mangle {
	chain PREROUTING { type filter hook prerouting priority -150; tcp dport 1 tproxy to :1; accept; }
}
table ip mine { chain INPUT { type filter hook forward priority 0; policy drop; drop; }; chain c { drop; drop; }; }
table inet filter {
	chain INPUT { type filter hook input priority 7; policy drop; }
	chain b { type filter hook input priority 8; policy drop; drop; }
	chain c { type filter hook output priority 8; policy drop; }
	chain d { type filter hook forward priority 8; }
}
table netdev filter { chain c { type filter hook ingress device lo priority 0; policy drop; }; }
table bridge filter { chain c { type filter hook prerouting priority 0; policy drop; }; }
table arp filter { chain c { type filter hook output priority 0; policy drop; }; }
`, "nft", "-f", "-")
	got := map[string]string{}
	for name, table := range read(t) {
		got[name] = fmt.Sprintf("%v rules: %v act, made %v %v; policies %v, chains %v, wrong %v, %v %v",
			table.Rules, table.Acts, table.NFTMade, table.MadeIn, table.Policies, table.Chains, table.Wrong,
			table.Native, table.Dormant)
	}
	for name, want := range map[string]string{
		"ip filter": "4 rules: 3 act, made 2 [INPUT]; policies [{OUTPUT DROP} {mine DROP}], chains [mine], wrong [], " +
			"false false",
		"ip mangle": "1 rules: 0 act, made 0 []; policies [], chains [], wrong [], false false",
		"ip raw": "1 rules: 1 act, made 1 [PREROUTING]; policies [], chains [], wrong [" +
			"{OUTPUT type filter hook output priority -299 type filter hook output priority -300} " +
			"{PREROUTING no hook type filter hook prerouting priority -300}], false true",
		"ip nat": "4 rules: 2 act, made 4 [PREROUTING POSTROUTING]; policies [], chains [], wrong [" +
			"{INPUT type filter hook input priority 100 type nat hook input priority 100}], false false",
		"ip6 mangle": "2 rules: 1 act, made 2 [PREROUTING]; policies [], chains [], wrong [], false false",
		"ip mine":    "3 rules: 0 act, made 0 []; policies [{forward DROP}], chains [], wrong [], true false",
		"inet filter": "1 rules: 0 act, made 0 []; policies [{input DROP} {output DROP}], chains [], wrong [], " +
			"true false",
		"netdev filter": "0 rules: 0 act, made 0 []; policies [{ingress DROP}], chains [], wrong [], true false",
		"bridge filter": "0 rules: 0 act, made 0 []; policies [{prerouting DROP}], chains [], wrong [], true false",
		"arp filter":    "0 rules: 0 act, made 0 []; policies [{output DROP}], chains [], wrong [], true false",
	} {
		if got[name] != want {
			t.Errorf("%s: got\n%s, want\n%s", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("also got %v", got)
	}
}

// A table that a process owns: nobody else can change it.
func TestOwned(t *testing.T) {
	host.Netns(t)
	nft := exec.Command("nft", "-i")
	nft.Env = append(os.Environ(), "HOME="+t.TempDir()) // where it writes what was typed
	stdin, err := nft.StdinPipe()
	host.Check(t, err)
	stdout, err := nft.StdoutPipe()
	host.Check(t, err)
	host.Check(t, nft.Start())
	defer nft.Wait()
	defer stdin.Close()
	_, err = fmt.Fprint(stdin, "add table ip filter { flags owner; }\nlist tables\n")
	host.Check(t, err)
	_, err = stdout.Read(make([]byte, 1))
	host.Check(t, err)
	host.Run(t, "nft", "add", "table", "ip", "nat")
	all := read(t)
	if !all["ip filter"].Owned || all["ip nat"].Owned {
		t.Errorf("got %+v", all)
	}
}

// A native table with too many rules, or chains, hides nothing of iptables' tables but the names of chains.
func TestLarge(t *testing.T) {
	host.Netns(t)
	const number = 33_000
	for what, script := range map[string]string{
		"rules":  "table ip aaa { chain c { " + strings.Repeat("drop;", number) + " }; }\n",
		"chains": "table ip aaa {\n" + many("chain c%d { }\n", number) + "}\n",
	} {
		host.Run(t, "nft", "flush", "ruleset")
		host.Feed(t, script+"table ip zzz { chain c { drop; }; }\n", "nft", "-f", "-")
		host.Feed(t, "*filter\n:INPUT DROP [0:0]\n"+many(":C%d - [0:0]\n", 100)+
			"-A INPUT -j DROP\n-A FORWARD -j ACCEPT\nCOMMIT\n", "iptables-nft-restore")
		all := read(t)
		filter, native := all["ip filter"], all["ip aaa"]
		if filter.More || filter.Rules != 2 || filter.Acts != 1 || len(filter.Policies) != 1 ||
			len(filter.Chains) != 64 && what == "rules" ||
			!native.More || native.Rules != map[string]int{"rules": nft.MaxObjects}[what] || all["ip zzz"].Rules != 1 {
			t.Errorf("%s: got %+v, %+v, %+v", what, filter, native, all["ip zzz"])
		}
	}
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -j DROP\n", number)+"COMMIT\n", "iptables-legacy-restore")
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -j DROP\n", number)+"COMMIT\n", "iptables-nft-restore")
	all := read(t)
	legacy := all["legacy ip filter"]
	if !legacy.More || legacy.Rules != number+4 || legacy.Acts != 0 || !all["ip filter"].More {
		t.Errorf("got %+v, %+v", legacy, all["ip filter"])
	}
}

func many(format string, number int) string {
	var b strings.Builder
	for i := range number {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// While a table is replaced, it never looks as if it had more rules, and that of legacy never as if it had fewer,
// unless the error says so. That of nf_tables can: the kernel takes old rules from its lists after the generation has
// changed, while a dump of the new generation goes on by its place in the list (seen with 6.18, in one of 50 runs).
func TestReplaced(t *testing.T) {
	host.Netns(t)
	script := "*filter\n" + strings.Repeat("-A INPUT -j DROP\n", 1000) + "COMMIT\n"
	for _, restore := range []string{"iptables-nft-restore", "iptables-legacy-restore"} {
		host.Feed(t, script, restore)
	}
	loop := exec.Command("sh", "-c", `while printf %s "$0" | iptables-nft-restore && printf %s "$0" | `+
		`iptables-legacy-restore; do :; done`, script)
	host.Check(t, loop.Start())
	defer loop.Wait()
	defer loop.Process.Kill()
	for range 300 {
		tables, errNFT, errLegacy := Read(true)
		for _, table := range tables {
			err := map[detect.Backend]error{detect.NFT: errNFT, detect.Legacy: errLegacy}[table.Backend]
			isCut := errors.Is(err, iptables.ErrChanged)
			isFewer := table.Rules < 1000 && table.Backend == detect.NFT
			isRight := table.Acts == table.Rules && (table.Rules == 1000 || isFewer)
			if table.More != isCut || !isCut && !isRight {
				t.Fatalf("got %+v, %v", table, err)
			}
		}
	}
}

// An error is that of its backend, and what was read before it counts.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		refuse func()
		nft    error
		legacy error
	}{
		{refuse: func() {}},
		{refuse: func() { host.DropCapability(t, unix.CAP_NET_ADMIN) }, nft: unix.EPERM, legacy: unix.EPERM},
		{refuse: func() { host.RefuseOption(t, 65, unix.EPERM) }, legacy: unix.EPERM},
		{refuse: func() { host.RefuseCall(t, unix.SYS_SENDTO, unix.ENOMEM) }, nft: unix.ENOMEM},
	} {
		host.OnThread(func() {
			host.Netns(t)
			host.Run(t, "iptables-nft", "-A", "INPUT")
			host.Run(t, "iptables-legacy", "-A", "INPUT")
			test.refuse()
			tables, errNFT, errLegacy := Read(true)
			if !errors.Is(errNFT, test.nft) || !errors.Is(errLegacy, test.legacy) {
				t.Errorf("got %v, %v", errNFT, errLegacy)
			}
			for _, table := range tables {
				want := map[detect.Backend]error{detect.NFT: test.nft, detect.Legacy: test.legacy}[table.Backend]
				isWhole := want == nil
				if table.More == isWhole || isWhole && table.Rules != 1 {
					t.Errorf("got %+v", table)
				}
			}
			tables, errNFT, _ = Read(false)
			if errNFT != nil || len(tables) != 1 || tables[0].Backend != detect.Legacy {
				t.Errorf("without nf_tables: got %+v, %v", tables, errNFT)
			}
		})
	}
}
