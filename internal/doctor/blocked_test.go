// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// filterTable is the table filter as iptables-save prints it, from lines without "-A" and with ";" for a new line. It
// has the chains X, Y and Z.
func filterTable(text string) *saved {
	lines := []string{"*filter", ":X - [0:0]", ":Y - [0:0]", ":Z - [0:0]"}
	for line := range strings.SplitSeq(text, "; ") {
		if strings.HasPrefix(line, ":") {
			lines = append(lines, line+" [0:0]")
		} else {
			lines = append(lines, "-A "+line)
		}
	}
	return &parseSaved(detect.IPv4, strings.Join(lines, "\n")+"\n")[0]
}

// What is blocked stays blocked. The chain X is left over.
func TestHostDiffers(t *testing.T) {
	const drops = ":FORWARD ACCEPT; FORWARD -j X; X -s 192.0.2.1 -j DROP"
	const accepts = ":FORWARD DROP; FORWARD -j X; X -p tcp -j ACCEPT"
	for _, test := range []struct {
		doc    string
		text   string
		host   string
		blocks bool
	}{
		{"the host has the rule", drops, drops, false},
		{"the rule has another comment", drops, ":FORWARD ACCEPT; FORWARD -m comment --comment \"to X\" -j X; " +
			"X -s 192.0.2.1 -m comment --comment blocked -j DROP", false},
		{"the host lacks the rule", drops, ":FORWARD ACCEPT; FORWARD -j X", true},
		{"the host drops something else", drops, ":FORWARD ACCEPT; FORWARD -j X; X -s 192.0.2.2 -j DROP", true},
		{"the host has it in another chain", drops, ":FORWARD ACCEPT; FORWARD -j X; Y -s 192.0.2.1 -j DROP", true},
		{"nothing leads there in the host's", drops, ":FORWARD ACCEPT; X -s 192.0.2.1 -j DROP", true},
		{"something else leads there in the host's", drops,
			":FORWARD ACCEPT; FORWARD -i eth0 -j X; X -s 192.0.2.1 -j DROP", true},
		{"the host's is for INPUT", drops, ":INPUT ACCEPT; :FORWARD ACCEPT; INPUT -j X; X -s 192.0.2.1 -j DROP", true},
		{"the host returns before", drops,
			":FORWARD ACCEPT; FORWARD -j X; X -p tcp -j RETURN; X -s 192.0.2.1 -j DROP", true},
		{"the host accepts before", drops,
			":FORWARD ACCEPT; FORWARD -j ACCEPT; FORWARD -j X; X -s 192.0.2.1 -j DROP", true},
		{"the host accepts before, in another chain", drops,
			":FORWARD ACCEPT; FORWARD -j Y; FORWARD -j X; X -s 192.0.2.1 -j DROP; Y -p tcp -j ACCEPT", true},
		{"both have that chain", drops + "; Y -p tcp -j ACCEPT; FORWARD -j Y",
			":FORWARD ACCEPT; FORWARD -j Y; FORWARD -j X; X -s 192.0.2.1 -j DROP; Y -p tcp -j ACCEPT", true},
		{"the other chain only returns", drops,
			":FORWARD ACCEPT; FORWARD -j Y; FORWARD -j X; X -s 192.0.2.1 -j DROP; Y -p tcp -j RETURN", false},
		{"the host accepts before, the other table behind it", drops + "; X -p tcp -j ACCEPT",
			":FORWARD ACCEPT; FORWARD -j X; X -p tcp -j ACCEPT; X -s 192.0.2.1 -j DROP", true},
		{"the host accepts behind it", drops, drops + "; X -j ACCEPT", false},
		{"both return before", ":FORWARD ACCEPT; FORWARD -j X; X -p tcp -j RETURN; X -j REJECT",
			":FORWARD ACCEPT; FORWARD -j X; X -p tcp -j RETURN; X -j REJECT", false},
		{"X goes on in Y, which drops", ":FORWARD ACCEPT; FORWARD -j X; X -j Y; Y -j DROP",
			":FORWARD ACCEPT; FORWARD -j X; Y -j DROP", true},
		{"nothing leads to Y in the host's", ":FORWARD ACCEPT; FORWARD -j Y; Y -j X; X -j DROP",
			":FORWARD ACCEPT; Y -j X; X -j DROP", true},
		{"Y stays, and the host accepts before it", ":FORWARD ACCEPT; FORWARD -j Y; Y -j X; X -j DROP",
			":FORWARD ACCEPT; FORWARD -j ACCEPT; FORWARD -j Y; Y -j X; X -j DROP", true},
		{"Y stays, and less comes to it in the host's", ":FORWARD ACCEPT; FORWARD -j Y; Y -j X; X -j DROP",
			":FORWARD ACCEPT; FORWARD -i eth0 -j Y; Y -j X; X -j DROP", true},
		{"Y stays, and all is the same", ":FORWARD ACCEPT; FORWARD -j Y; Y -j X; X -j DROP",
			":FORWARD ACCEPT; FORWARD -j Y; Y -j X; X -j DROP", false},
		{"nothing leads to X", ":FORWARD ACCEPT; X -j DROP", ":FORWARD ACCEPT", false},

		{"the host's policy is the same", accepts, ":FORWARD DROP", false},
		{"the host's policy lets pass", accepts, ":FORWARD ACCEPT; FORWARD -j X; X -p tcp -j ACCEPT", true},
		{"the host accepts all before", accepts, ":FORWARD DROP; FORWARD -j ACCEPT", true},
		{"the host accepts all before, in another chain", accepts, ":FORWARD DROP; FORWARD -j Y; Y -j ACCEPT", true},
		{"the host drops the rest in another chain", accepts,
			":FORWARD ACCEPT; FORWARD -j X; X -p tcp -j ACCEPT; FORWARD -j Y; Y -j DROP", false},
		{"the host accepts some before", accepts, ":FORWARD DROP; FORWARD -i lo -j ACCEPT", false},
		{"the host rejects the rest", accepts, ":FORWARD ACCEPT; FORWARD -j X; FORWARD -j REJECT", false},
		{"the host rejects some", accepts, ":FORWARD ACCEPT; FORWARD -j X; FORWARD -s 192.0.2.1 -j REJECT", true},
		{"an allow-list stays", accepts + "; FORWARD -s 192.0.2.1 -j ACCEPT", ":FORWARD DROP", true},
		{"the host has the allow-list", accepts + "; FORWARD -s 192.0.2.1 -j ACCEPT",
			":FORWARD DROP; FORWARD -s 192.0.2.1 -j ACCEPT", false},
		{"others accept, in INPUT", ":INPUT DROP; INPUT -j X; INPUT -i lo -j ACCEPT; X -j ACCEPT", ":INPUT DROP", true},
		{"INPUT of the host is open", ":INPUT DROP; INPUT -j X; X -j ACCEPT", ":INPUT ACCEPT; INPUT -j X", true},
	} {
		got := planRemoval(removal{chains: []string{"X"}}, filterTable(test.text), filterTable(test.host), false)
		if got.blocks != test.blocks || got.unsafe {
			t.Errorf("%s: blocks %v, unsafe %v", test.doc, got.blocks, got.unsafe)
		}
	}
	for _, text := range []string{drops, accepts} {
		if !planRemoval(removal{chains: []string{"X"}}, filterTable(text), nil, false).blocks {
			t.Errorf("%s: the host's own table was not listed", text)
		}
	}
}

// What nft has made directly, iptables-nft may print as another rule, or not at all.
func TestNotExact(t *testing.T) {
	const text = ":FORWARD ACCEPT; FORWARD -j X; X -s 192.0.2.1 -j DROP"
	inexactOf := func(text, chain string) *saved {
		table := filterTable(text)
		table.native = map[string]bool{chain: true}
		return table
	}
	inexact := func(chain string) *saved { return inexactOf(text, chain) }
	const first = ":FORWARD ACCEPT; FORWARD -s 192.0.2.0/24 -j ACCEPT; FORWARD -j X; X -s 192.0.2.1 -j DROP"
	const inY = ":FORWARD ACCEPT; FORWARD -j Y; Y -s 192.0.2.0/24 -j ACCEPT; FORWARD -j X; X -s 192.0.2.1 -j DROP"
	const closed = ":FORWARD DROP; FORWARD -j X; X -p tcp -j ACCEPT; FORWARD -s 192.0.2.0/24 -j ACCEPT"
	omits := filterTable(text)
	omits.omits = true
	jump := filterTable(text)
	jump.rules[0].inexact = true
	ambiguous := filterTable(text)
	ambiguous.chains = append(ambiguous.chains, "LOG")
	for _, test := range []struct {
		doc            string
		table, host    *saved
		blocks, unsafe bool
	}{
		{"all is as printed", filterTable(text), filterTable(text), false, false},
		{"the host has a rule of nft's", filterTable(text), inexact("FORWARD"), true, false},
		{"the host has more rules", filterTable(text), omits, true, false},
		{"a chain that goes has one", inexact("X"), filterTable(text), false, true},
		{"a chain that stays has one", inexact("FORWARD"), filterTable(text), false, false},
		{"the rule that leads there is one", jump, filterTable(text), true, false},
		{"both accept before", filterTable(first), filterTable(first), false, false},
		{"they may not accept the same", inexactOf(first, "FORWARD"), filterTable(first), true, false},
		{"both accept in Y", filterTable(inY), filterTable(inY), false, false},
		{"they may not accept the same in Y", inexactOf(inY, "Y"), filterTable(inY), true, false},
		{"both accept what a policy drops", filterTable(closed), filterTable(closed), false, false},
		{"they may not accept the same of it", inexactOf(closed, "FORWARD"), filterTable(closed), true, false},
		{"there are more rules", omits, filterTable(text), false, true},
		{"a chain of the host's is called LOG", filterTable(text), ambiguous, true, false},
		{"a chain is called LOG", ambiguous, filterTable(text), false, true},
	} {
		got := planRemoval(removal{backend: detect.NFT, chains: []string{"X"}}, test.table, test.host, false)
		if got.blocks != test.blocks || got.unsafe != test.unsafe {
			t.Errorf("%s: blocks %v, unsafe %v", test.doc, got.blocks, got.unsafe)
		}
	}
}

// Rules that have no effect block nothing: those of a table that is dormant, and of a chain that is not hooked.
func TestHostsTableIsFaulty(t *testing.T) {
	for _, test := range []struct {
		faults []detect.Fault
		blocks bool
	}{
		{nil, false},
		{[]detect.Fault{{Kind: detect.FaultDormant, Table: "filter"}}, false},
		{[]detect.Fault{{Kind: detect.FaultDormant, Table: "nat"}}, true},
		{[]detect.Fault{{Kind: detect.FaultNotHooked, Table: "nat", Chain: "OUTPUT"}}, true},
	} {
		r := healthy()
		nftHost(&r)
		rules(0, 2, "X")(&r)
		rules(2, 2, "X")(&r)
		r.saved = parseSaved(detect.IPv4, "*nat\n:OUTPUT ACCEPT [0:0]\n:X - [0:0]\n-A OUTPUT -j X\n-A X -j DROP\n")
		r.savedHost = r.saved
		r.Host.Evidence[0].Faults = test.faults
		removals := r.removals()
		if len(removals) != 1 || removals[0].blocks != test.blocks {
			t.Errorf("%v: got %+v", test.faults, removals)
		}
	}
}

// A command must fit into one argument.
func TestTooLong(t *testing.T) {
	x := removal{}
	for i := range 400 {
		x.chains = append(x.chains, fmt.Sprintf("KUBE-ROUTER-POD-%d", i))
	}
	if x.tooLong() || x.byHand() {
		t.Errorf("%d bytes are too long", len(x.edits()))
	}
	for i := range 2000 {
		x.chains = append(x.chains, fmt.Sprintf("KUBE-ROUTER-FW-%d", i))
	}
	const argument = 32 * 4096 // MAX_ARG_STRLEN
	if !x.byHand() || len(x.script()) < argument {
		t.Errorf("%d bytes are not too long", len(x.script()))
	}
}

// Where a part of the printed command fails, all of it does, and nothing is restored.
func TestScriptFails(t *testing.T) {
	sed, err := exec.LookPath("sed")
	if err != nil {
		t.Fatal(err)
	}
	const listed = "echo '# Generated'; echo '*filter'; echo ':X - [0:0]'; echo COMMIT"
	for _, test := range []struct {
		doc, save, sed, restore string
		want                    string // what comes to iptables-restore
	}{
		{"all is well", listed, "exec " + sed + ` "$@"`, "cat >restored", "*filter\n-F X\n-X X\nCOMMIT\n"},
		{"no listing", "exit 1", "exec " + sed + ` "$@"`, "cat >restored", ""},
		{"only its first line", "echo '# Generated'; exit 1", "exec " + sed + ` "$@"`, "cat >restored", ""},
		{"sed cannot run", listed, "exit 126", "cat >restored", ""},
		{"nothing is restored", listed, "exec " + sed + ` "$@"`, "exit 4", ""},
	} {
		dir := t.TempDir()
		for name, lines := range map[string]string{
			"iptables-legacy-save":    test.save,
			"iptables-legacy-restore": test.restore,
			"sed":                     test.sed,
		} {
			err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+lines+"\n"), 0o755)
			if err != nil {
				t.Fatal(err)
			}
		}
		x := removal{backend: detect.Legacy, family: detect.IPv4, table: "filter", chains: []string{"X"}}
		cmd := exec.Command("/bin/sh", "-c", x.script())
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		err := cmd.Run()
		restored, _ := os.ReadFile(filepath.Join(dir, "restored"))
		if string(restored) != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %v, restored %q", test.doc, err, restored)
		}
	}
}

// Rules that a policy would drop for are not to be removed before the chains: rules-in-both waits.
func TestPolicyThatOpens(t *testing.T) {
	r := healthy()
	rules(0, 2, "DOCKER")(&r)
	rules(2, 2, "DOCKER")(&r)
	r.saved = parseSaved(detect.IPv4, "*nat\n:OUTPUT DROP [0:0]\n:DOCKER - [0:0]\n-A OUTPUT -j DOCKER\n"+
		"-A OUTPUT -o lo -j ACCEPT\n-A DOCKER -j ACCEPT\n")
	r.savedHost = r.saved
	r.Diagnose()
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Fix, "becomes ACCEPT: OUTPUT in nft ipv4 nat") {
		t.Errorf("got %+v", r.Findings)
	}
}
