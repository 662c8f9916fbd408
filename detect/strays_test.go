// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// strays are rules that programs in containers make, in whatever backend they guessed.
func strays(r *rand.Rand, family Family, n int) string {
	from := func() string {
		if family == IPv6 {
			return fmt.Sprintf("2001:db8::%x/128", 1+r.IntN(0xffff))
		}
		return fmt.Sprintf("192.0.2.%d/32", r.IntN(256))
	}
	var b strings.Builder
	switch r.IntN(4) {
	case 0: // a VPN
		b.WriteString("*nat\n")
		for range n {
			fmt.Fprintf(&b, "-A POSTROUTING -s %s -j MASQUERADE\n", from())
		}
	case 1: // fail2ban
		b.WriteString("*filter\n:f2b-sshd - [0:0]\n")
		for range n {
			fmt.Fprintf(&b, "-A f2b-sshd -s %s -j REJECT\n", from())
		}
	case 2: // Tailscale
		b.WriteString("*filter\n:ts-input - [0:0]\n:ts-forward - [0:0]\n")
		for range n {
			fmt.Fprintf(&b, "-A ts-input -s %s -i tailscale0 -m comment --comment x -j ACCEPT\n", from())
		}
	case 3: // a mesh, or kube-proxy
		b.WriteString("*nat\n:ISTIO_OUTPUT - [0:0]\n:KUBE-SERVICES - [0:0]\n")
		for range n {
			fmt.Fprintf(&b, "-A ISTIO_OUTPUT -p tcp -m tcp --dport %d -j RETURN\n", 1+r.IntN(65535))
		}
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// Whatever stray containers have left, and where: no certain answer is wrong, and where iptables made the program's
// rules, it is certain.
func TestHostProgramAgainstStrays(t *testing.T) {
	all := dumps(t)
	certainly := 0
	seeds := host.Seeds(t, "TEST_PROGRAMS")
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			host.Netns(t)
			r := rand.New(rand.NewPCG(seed, 39))
			d := all[r.IntN(len(all))]
			backend := d.backends()[r.IntN(len(d.backends()))]
			d.load(t, backend)
			q := Query{Everything: r.IntN(4) == 0}
			script := d.name + " in " + string(backend)
			most := 0
			for _, stray := range []Mode{NFT, Legacy} {
				for _, f := range families {
					n := []int{0, 0, 1, 3, 30, 100, 1000}[r.IntN(7)]
					if n == 0 || stray == Legacy && f == IPv6 && r.IntN(2) == 0 {
						continue
					}
					host.Feed(t, strays(r, f, n), program(stray, f, "-restore"), "-w", "--noflush")
					script += fmt.Sprintf(", %d strays in %s %s", n, stray, f)
					most = max(most, n)
				}
			}
			if r.IntN(4) == 0 {
				q.Remembered = guess([]Mode{NFT, Legacy}[r.IntN(2)])
			}

			p := newProber(q)
			defer p.close()
			without := Mode("")
			if r.IntN(4) == 0 {
				without = NFT
				if backend == NFT {
					without = Legacy
				}
				p.forget(t, without)
			}
			got := p.run()
			if got.Reason == Remembered {
				return
			}
			if got.Conclusive && got.Mode != backend {
				t.Errorf("%s, without %q, %+v: got %v", script, without, q, got)
			}
			if got.Conclusive {
				certainly++
			}
			named := got.Conclusive && (got.Reason == HostProgram || most > 100 && got.Reason == RuleCount)
			if d.nftables == "" && !named {
				t.Errorf("%s, without %q, %+v: got %v, %s", script, without, q, got, got.Uncertainty())
			}
		})
	}
	if certainly < len(seeds)/3 && len(seeds) > 1 {
		t.Errorf("of %d, only %d are certain", len(seeds), certainly)
	}
}

// forget makes it a kernel without a backend.
func (p *prober) forget(t *testing.T, backend Mode) {
	if backend == NFT {
		p.nft.supported = No
		p.nft.fatal = errNoNFTables
		return
	}
	proc := fakeProc(t, "thread-self/net/dev=", "sys/kernel/osrelease=6.18")
	for i := range p.legacy {
		p.legacy[i].proc = proc
		p.legacy[i].names = "ip_tables_names"
	}
	file := proc + "/thread-self/net/ip_tables_names"
	host.Check(t, os.WriteFile(file, nil, 0o644)) // x_tables, and no table of it
}
