// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"os"
	"os/exec"
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
		"iptables-nft -t mangle -N KUBE-IPTABLES-HINT; mount -t tmpfs none /tmp; cd /usr/sbin; " +
			"cp -a iptables iptables-current iptables-wrapper /tmp; mount --bind /tmp /usr/sbin; " +
			"iptables -S; test $? = 127 && echo ok",
	},
	{"is not one of auto, nft, legacy", "IPTABLES_WRAPPER_MODE=nf_tables iptables -S"},
	{
		"permission denied",
		"chmod 644 /usr/sbin/xtables-nft-multi; iptables -S; test $? = 126 && echo ok; chmod 755 /usr/sbin/xtables-nft-multi",
	},
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

// Each message appears for real, and doctor knows it. Each is made on a host of its own.
func TestMessages(t *testing.T) {
	known := string(host.Read(t, "../../internal/doctor/messages.go"))
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "iptables-wrapper", "install")
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"table":      "*filter\nCOMMIT\n",
		"rule":       "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n",
		"owner.sh":   owned,
		"missing.sh": missing,
	} {
		host.Check(t, os.WriteFile(name, []byte(content), 0o644))
	}
	for _, m := range messages {
		if !strings.Contains(known, m.text) {
			t.Errorf("doctor does not know %q", m.text)
		}
		output, _ := exec.Command("unshare", "--net", "--mount", "sh", "-c", m.commands).CombinedOutput() // most fail
		if !strings.Contains(string(output), m.text) {
			t.Errorf("%q does not appear: %s", m.text, output)
		}
		if strings.Contains(m.commands, "echo ok") && !strings.HasSuffix(string(output), "\nok\n") {
			t.Errorf("another exit status: %s", output)
		}
	}
}
