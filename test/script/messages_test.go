// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// message is what somebody sees, and a shell's commands after which iptables itself says so here.
type message struct{ text, commands string }

// strace stands in for a kernel that lacks something: it changes the question, or the answer, of one system call.
var messages = []message{
	{"Could not fetch rule set generation id: Permission denied", "capsh --drop=cap_net_admin -- -c 'iptables-nft -S'"},
	{
		// the question goes to a subsystem that no kernel has
		"Could not fetch rule set generation id: Invalid argument",
		"strace -o trace -e trace=sendto -e inject=sendto:poke_enter=@arg2=14000000100f:when=1 iptables-nft -S",
	},
	{
		"Failed to initialize nft: Protocol not supported",
		"strace -o trace -e trace=socket -e inject=socket:error=EPROTONOSUPPORT iptables-nft -S",
	},
	{
		"can't initialize iptables table",
		"strace -o trace -e trace=getsockopt -e inject=getsockopt:error=ENOENT iptables-legacy -S",
	},
	{
		"Table does not exist (do you need to insmod?)",
		"strace -o trace -e trace=getsockopt -e inject=getsockopt:error=ENOENT iptables-legacy -S",
	},
	{
		"iptables who? (do you need to insmod?)",
		"strace -o trace -e trace=getsockopt -e inject=getsockopt:error=ENOPROTOOPT iptables-legacy -S",
	},
	{
		"unable to initialize table",
		"strace -o trace -e trace=getsockopt -e inject=getsockopt:error=ENOENT iptables-legacy-restore table",
	},
	{"Module ip_tables not found", "modprobe -S no-such-kernel ip_tables"},
	{"RULE_APPEND failed", "iptables-nft -t raw -A PREROUTING -p tcp -j CT --helper nosuch"},
	{
		"CHAIN_ADD failed",
		"nft add table ip nat; nft add chain ip nat POSTROUTING; iptables-nft -t nat -A POSTROUTING -j ACCEPT",
	},
	{"TABLE_ADD failed", "sh owner.sh iptables-nft-restore rule"},
	{"CHAIN_UPDATE failed", "sh owner.sh iptables-nft -P INPUT DROP"},
	{"CHAIN_USER_ADD failed", "sh owner.sh iptables-nft -N MINE"},
	{"not supported, missing kernel module?", "sh missing.sh"},
	{"Couldn't load match", "iptables-nft -A INPUT -m nosuch"},
	{"Couldn't load target", "iptables-legacy -A INPUT -j nosuch"},
	{"No chain/target/match by that name", "iptables-legacy -A KUBE-FORWARD -j ACCEPT"},
	{"Chain already exists", "iptables-nft -N MINE; iptables-nft -N MINE"},
	{
		"use 'nft' tool",
		"nft add table ip filter; nft add chain ip filter mine '{ type filter hook input priority 0; }'; " +
			"iptables-nft -S",
	},
	{
		"Parsing nftables rule failed",
		"iptables-nft -P FORWARD ACCEPT; nft add rule ip filter FORWARD meta mark set numgen inc mod 2; " +
			"iptables-nft -C FORWARD -j ACCEPT",
	},
	{"# Warning: iptables-legacy tables present", "iptables-legacy -S; iptables-nft -S"},
	{"Another app is currently holding the xtables lock", "flock -o /run/xtables.lock iptables-legacy -w 1 -S"},
	{"can't open lock file", "mount -t tmpfs -o ro none /run; iptables-legacy -S"},
	{
		"no such program",
		"iptables-wrapper install; iptables-nft -t mangle -N KUBE-IPTABLES-HINT; rm /usr/sbin/xtables-nft-multi; " +
			"iptables -S; test $? = 127 && echo ok",
	},
	{"is not one of auto, nft, legacy", "iptables-wrapper install; IPTABLES_WRAPPER_MODE=nf_tables iptables -S"},
	{
		"permission denied",
		"iptables-wrapper install; chmod 644 /usr/sbin/xtables-nft-multi; iptables -S; test $? = 126 && echo ok",
	},
}

// v3 is a program of another project whose message users of this one know. It cannot be had everywhere, so the page
// names the source that prints the message. TEST_V3=FILE names the program, and then the message must appear, too.
var v3 = struct{ message, source, commands string }{
	message: "Unable to redirect iptables binaries",
	source:  "kubernetes-sigs/iptables-wrappers:main.go@bfef9e5087a198b50a4124bb9ce9d2c7c99025dd",
	commands: "install $TEST_V3 /usr/sbin/iptables-wrapper; iptables-wrapper install; " +
		"mount --bind -o ro /usr/sbin /usr/sbin; iptables -S",
}

// owned makes the tables of iptables somebody's, with the flag owner, and then runs a command.
const owned = `mkfifo fifo
nft -i <fifo >/dev/null &
exec 5>fifo
{
	echo 'add table ip filter { flags owner; }'
	for hook in input forward output; do
		chain=$(echo $hook | tr a-z A-Z)
		echo "add chain ip filter $chain { type filter hook $hook priority 0; policy accept; }"
	done
} >&5
until nft list chain ip filter OUTPUT >/dev/null 2>&1; do sleep 0.02; done
"$@"
`

// missing uses targets until there is one that the kernel has no module for.
const missing = `set -- CLUSTERIP \
	'-p tcp -j CLUSTERIP --new --hashmode sourceip --clustermac 01:00:5E:00:00:20 --total-nodes 2 --local-node 1' \
	LED '-j LED --led-trigger-id x' DNPT '-t mangle -j DNPT --src-pfx fd00::/64 --dst-pfx fd01::/64'
while test $# -gt 0; do
	iptables-nft -A INPUT $2
	shift 2
done
`

// Each message of the page's table appears for real, and each that appears here is in the table.
func TestMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	host.Check(t, err)
	_, table, _ := strings.Cut(string(page), "\n| message | cause | command |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for i, part := range strings.Split(cell, "`") {
			if i%2 == 1 {
				documented = append(documented, part)
			}
		}
	}
	if !strings.Contains(string(page), "<!-- "+v3.source+" -->") {
		t.Errorf("no comment says where %q comes from: %s", v3.message, v3.source)
	}
	made := slices.Clone(messages)
	if os.Getenv("TEST_V3") != "" {
		made = append(made, message{v3.message, v3.commands})
	}
	for _, text := range documented {
		if text != v3.message && !slices.ContainsFunc(messages, func(m message) bool { return m.text == text }) {
			t.Errorf("nothing makes %q appear", text)
		}
	}
	if !slices.Contains(documented, v3.message) {
		t.Errorf("%q is not in the table", v3.message)
	}
	for _, m := range made {
		if !slices.Contains(documented, m.text) {
			t.Errorf("%q is not in the table", m.text)
		}
		t.Run(m.text, func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
			dir := t.TempDir()
			for name, content := range map[string]string{
				"table":      "*filter\nCOMMIT\n",
				"rule":       "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n",
				"owner.sh":   owned,
				"missing.sh": missing,
			} {
				host.Check(t, os.WriteFile(dir+"/"+name, []byte(content), 0o644))
			}
			cmd := exec.Command("sh", "-c", m.commands)
			cmd.Dir = dir
			output, _ := cmd.CombinedOutput() // most of them fail
			if !strings.Contains(string(output), m.text) {
				t.Errorf("it does not appear: %s", output)
			}
			if strings.Contains(m.commands, "echo ok") && !strings.HasSuffix(string(output), "\nok\n") {
				t.Errorf("another exit status: %s", output)
			}
		})
	}
}
