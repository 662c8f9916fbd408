// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Tables are replaced in a loop, by real iptables-restore runs, while the host is looked at: each answer is the right
// one, certain if it is by a marker, and without an error. Without TEST_ALL, only tables of legacy.
func TestRaces(t *testing.T) {
	detections, rounds := host.Number(150, 2500), host.Number(6, 200)
	hosts := []struct {
		doc     string
		backend detect.Backend
		certain bool
		before  string
		// by what, each in turn: the program, a table, chains, and how many rules are in the first of them
		replace string
	}{
		{
			"hint in legacy, and its mangle replaced by one of another size", detect.Legacy, true,
			"iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
			"legacy mangle KUBE-IPTABLES-HINT 3; legacy mangle A,KUBE-IPTABLES-HINT,Z 0",
		},
		{
			"many rules in legacy, replaced by fewer and more, and few in nft", detect.Legacy, false,
			"iptables-nft -A INPUT -j ACCEPT; iptables-nft -A INPUT -j DROP",
			"legacy filter A 400; legacy filter A,B 900",
		},
		{
			"hint in nft, and all else replaced", detect.NFT, true, "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
			"nft nat A 100; nft mangle KUBE-IPTABLES-HINT,B 10; legacy mangle C 50",
		},
		{
			"many rules in nft, replaced by fewer and more, and few in legacy", detect.NFT, false,
			"iptables-legacy -A INPUT -j ACCEPT",
			"nft filter A 400; nft filter A,B 900",
		},
	}
	for _, h := range hosts[:host.Number(2, len(hosts))] {
		t.Run(h.doc, func(t *testing.T) {
			host.Netns(t)
			host.Run(t, "sh", "-ec", h.before)
			script := ""
			for i, replace := range strings.Split(h.replace, "; ") {
				fields := strings.Fields(replace)
				file := fmt.Sprintf("%s/%d", t.TempDir(), i)
				host.Run(t, "sh", "-ec", `chains=$(echo "$3" | tr , ' '); first=${chains%% *}
					{ echo "*$2"; for c in $chains; do echo ":$c - [0:0]"; done
					[ "$4" = 0 ] || seq -f "-A $first -p tcp --dport %g -j RETURN" "$4"; echo COMMIT; } >"$0"`,
					file, fields[0], fields[1], fields[2], fields[3])
				restore := "iptables-" + fields[0] + "-restore -w <" + file
				host.Run(t, "sh", "-ec", restore) // so that the host is what it is from the start
				script += restore + "\n"
			}
			for n := 0; n < detections; {
				cmd := exec.Command("sh", "-ec", fmt.Sprintf("for i in $(seq %d); do\n%sdone", rounds, script))
				host.Check(t, cmd.Start())
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				for running := true; running; n++ {
					select {
					case err := <-ended:
						host.Check(t, err)
						running = false
					default:
					}
					r, err := detect.Host("")
					if r.Backend != h.backend || r.Certain != h.certain || err != nil {
						t.Fatalf("detection %d: %s, certain: %v, %v: %+v", n, r.Backend, r.Certain, err, r)
					}
				}
			}
		})
	}
}
