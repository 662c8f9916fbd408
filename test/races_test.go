// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// At least so often each host of TestRaces is inspected, while its tables are replaced at least so often.
func detections() int   { return host.Number(150, 2500) }
func replacements() int { return host.Number(30, 500) }

// Tables are replaced in a loop, by real iptables-restore runs, while the host is looked at: each answer is the right one,
// conclusive, and without an error.
func TestRaces(t *testing.T) {
	hosts := []struct {
		doc     string
		mode    detect.Mode
		before  string   // commands
		replace []string // by what, each in turn: the program, a table, chains, and how many rules are in it
	}{
		{
			"hint in legacy, and its mangle replaced by one of another size", detect.Legacy, "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
			[]string{"iptables-legacy-restore mangle KUBE-IPTABLES-HINT 3", "iptables-legacy-restore mangle A,KUBE-IPTABLES-HINT,Z 0"},
		},
		{
			"hint in nft, and all else replaced", detect.NFT, "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
			[]string{"iptables-nft-restore nat A 100", "iptables-nft-restore mangle KUBE-IPTABLES-HINT,B 10", "iptables-legacy-restore mangle C 50"},
		},
		{
			"many rules in nft, replaced by fewer and more, and few in legacy", detect.NFT, "iptables-legacy -A INPUT -j ACCEPT",
			[]string{"iptables-nft-restore filter A 400", "iptables-nft-restore filter A,B 900"},
		},
		{
			"many rules in legacy, replaced by fewer and more, and few in nft", detect.Legacy, "iptables-nft -A INPUT -j ACCEPT; iptables-nft -A INPUT -j DROP",
			[]string{"iptables-legacy-restore filter A 400", "iptables-legacy-restore filter A,B 900"},
		},
	}
	defer func() {
		text := "At least that many: detection went on until real `iptables-restore` runs had replaced\ntables " + strconv.Itoa(replacements()) + " times, on each of these hosts:\n\n"
		for _, h := range hosts {
			text += "- " + h.doc + "\n"
		}
		section(t, "races", detections()*len(hosts), "detections while tables were replaced",
			text+"\nEach answer was the right one, conclusive, and without an error.")
	}()
	for _, h := range hosts {
		t.Run(h.doc, func(t *testing.T) {
			host.Netns(t)
			host.Run(t, "sh", "-ec", h.before)
			// One shell that loops until the test kills it.
			script := "while :; do\n"
			for i, replace := range h.replace {
				fields := strings.Fields(replace)
				rules, err := strconv.Atoi(fields[3])
				if err != nil {
					t.Fatal(err)
				}
				var b strings.Builder
				fmt.Fprintf(&b, "*%s\n", fields[1])
				for _, chain := range strings.Split(fields[2], ",") {
					fmt.Fprintf(&b, ":%s - [0:0]\n", chain)
				}
				for n := range rules {
					fmt.Fprintf(&b, "-A %s -s 10.0.%d.%d/32 -j RETURN\n", strings.Split(fields[2], ",")[0], n/256, n%256)
				}
				fmt.Fprintf(&b, "COMMIT\n")
				file := fmt.Sprintf("%s/%d", t.TempDir(), i)
				host.Feed(t, b.String(), "tee", file)
				host.Run(t, "sh", "-ec", fields[0]+" -w <"+file) // so that the host is what it is from the start
				script += fields[0] + " -w <" + file + " || exit 1; echo\n"
			}
			loop := exec.Command("sh", "-c", script+"done")
			stdout, err := loop.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := loop.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = loop.Process.Kill()
				if err := loop.Wait(); err == nil || loop.ProcessState.ExitCode() != -1 {
					t.Error("iptables-restore failed")
				}
			}()
			var replaced atomic.Int64
			go func() {
				for lines := bufio.NewScanner(stdout); lines.Scan(); {
					replaced.Add(1)
				}
				replaced.Add(int64(replacements())) // it has ended: so does the test
			}()
			for n := 0; n < detections() || replaced.Load() < int64(replacements()); n++ {
				r := detect.Host()
				if r.Mode != h.mode || !r.Conclusive {
					t.Fatalf("detection %d: %s, conclusive: %v: %+v", n, r.Mode, r.Conclusive, r)
				}
				for _, e := range r.Evidence {
					if e.Err != nil {
						t.Fatalf("detection %d: %s %s: %v", n, e.Backend, e.Family, e.Err)
					}
				}
			}
		})
	}
}
