// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// printed are commands of a shell after which iptables itself prints a message. strace stands in for a kernel that
// lacks something: it changes the question, or the answer, of one system call. $SID is a root with the newest iptables.
var printed = map[string]string{
	"Could not fetch rule set generation id: Permission denied": "setpriv --bounding-set=-net_admin iptables-nft -S",
	"Permission denied (you must be root)":                      "setpriv --bounding-set=-net_admin iptables-legacy -S",
	// The question goes to a subsystem that no kernel has.
	"Could not fetch rule set generation id: Invalid argument": "strace -o trace -e trace=sendto -e " +
		"inject=sendto:poke_enter=@arg2=14000000100f:when=1 iptables-nft -S",
	"Failed to initialize nft: Protocol not supported": "strace -o trace -e trace=socket -e " +
		"inject=socket:error=EPROTONOSUPPORT iptables-nft -S",
	"can't initialize iptables table":               getsockopt + "ENOENT iptables-legacy -S",
	"can't initialize ip6tables table":              getsockopt + "ENOENT ip6tables-legacy -S",
	"Table does not exist (do you need to insmod?)": getsockopt + "ENOENT iptables-legacy -S",
	"iptables who? (do you need to insmod?)":        getsockopt + "ENOPROTOOPT iptables-legacy -S",
	"unable to initialize table": "printf '*filter\\nCOMMIT\\n' >table; " + getsockopt +
		"ENOENT iptables-legacy-restore table",
	"not supported, missing kernel module?": "strace -o trace -e trace=socket -e " +
		"inject=socket:error=EPROTONOSUPPORT:when=2 iptables-nft -m comment -h",
	"Couldn't load match": "iptables-nft -A INPUT -m nosuch",
	"error while loading shared libraries": "touch empty; chmod 755 empty; for f in /usr/lib/*/libxtables.so.12; do " +
		"mount --bind empty $f; done; iptables-nft -S",
	// Its three causes: nft, a newer iptables, and a chain that does not exist.
	"use 'nft' tool": "{ nft add table ip filter; nft add chain ip filter C; nft add rule ip filter C ct state new; " +
		"iptables-nft -S C; nft flush ruleset; iptables-nft -A INPUT -p tcp --dport 1:9; " + oldProgram + "iptables " +
		"-S; nft flush ruleset; " + oldProgram + "iptables -S X; } >out 2>&1; test $(grep -c \"'nft' tool\" out) = 3 " +
		"|| echo another status; cat out",
	"Parsing nftables rule failed": "iptables-nft -P FORWARD ACCEPT; nft add rule ip filter FORWARD meta skuid 1; " +
		"iptables-nft -C FORWARD -j ACCEPT",
	"Failed to initialize nft: Permission denied": "strace -o trace -e trace=socket -e inject=socket:error=EACCES " +
		"iptables-nft -S",
	"extension not found":    comments + "iptables-nft-save",
	"Can't find library for": comments + "iptables-legacy-save",
	"RULE_DELETE failed": owned + "until iptables-nft -D INPUT 1 2>&1 | grep RULE_DELETE; do echo 'add " +
		"rule ip filter INPUT counter' >&5; done",
	"Too many links":                   "iptables-legacy -N A; iptables-legacy -A INPUT -j A; iptables-legacy -X A",
	"line 2 failed":                    "printf '*filter\n-A X -j ACCEPT\nCOMMIT\n' | iptables-legacy-restore",
	"Resource temporarily unavailable": setsockopt + "EAGAIN iptables-legacy -P INPUT ACCEPT",
	"Memory allocation problem":        setsockopt + "ENOMEM iptables-legacy -P INPUT ACCEPT",
	"Kernel error received":            "setpriv --bounding-set=-net_admin ipset list",
	"no such program": "iptables-nft -t mangle -N KUBE-IPTABLES-HINT; rm /usr/sbin/*tables*nft*; iptables -S; test " +
		"$? = 127 || echo another status",
	"permission denied": "iptables-nft -t mangle -N KUBE-IPTABLES-HINT; chmod 644 /usr/sbin/xtables-nft-multi; " +
		"iptables -S; test $? = 126 || echo another status",

	"RULE_APPEND failed": "iptables-nft -t raw -A PREROUTING -p tcp -j CT --helper nosuch",
	"RULE_INSERT failed": "iptables-nft -t raw -I PREROUTING -p tcp -j CT --helper nosuch",
	"CHAIN_ADD failed": "nft add table ip nat; nft add chain ip nat POSTROUTING; iptables-nft -t nat -A POSTROUTING " +
		"-j ACCEPT",
	"TABLE_ADD failed": "printf '*filter\\n-A INPUT -j ACCEPT\\nCOMMIT\\n' >rule; " + owned + "iptables-nft-restore " +
		"rule",
	"CHAIN_UPDATE failed":   owned + "iptables-nft -P INPUT DROP",
	"CHAIN_USER_ADD failed": owned + "iptables-nft -N MINE",
	"CHAIN_DEL failed":      "iptables-nft -N MINE; iptables-nft -A INPUT -j MINE; iptables-nft -X MINE",
	"CHAIN_USER_DEL failed": oldProgram + "iptables -N MINE; " + oldProgram + "iptables -A INPUT -j MINE; " +
		oldProgram + "iptables -X MINE",
	"Chain 'X' does not exist":                             "iptables-nft -A INPUT -j X",
	"Couldn't load target":                                 "iptables-legacy -A INPUT -j nosuch",
	"No chain/target/match by that name":                   "iptables-legacy -A KUBE-FORWARD -j ACCEPT",
	"Bad rule (does a matching rule exist in that chain?)": "iptables-nft -D INPUT -j ACCEPT",
	"Chain already exists":                                 "iptables-nft -N MINE; iptables-nft -N MINE",
	"Set X doesn't exist":                                  "iptables-nft -A INPUT -m set --match-set X src",
	"unknown option \"--":                                  "iptables-nft -A INPUT --dport 80",
	"Run `dmesg' for more information":                     "iptables-legacy -A INPUT -j TCPMSS --clamp-mss-to-pmtu",
	"Address family not supported by protocol": "strace -o trace -e trace=socket -e inject=socket:error=EAFNOSUPPORT " +
		"ip6tables-legacy -S",
	"Module ip_tables not found":                        "modprobe -S no-such-kernel ip_tables",
	"# Warning: iptables-legacy tables present":         "iptables-legacy -S; iptables-nft -S",
	"Another app is currently holding the xtables lock": "flock -o /run/xtables.lock iptables-legacy -w 1 -S",
	"can't open lock file":                              "mount -o remount,ro /run; iptables-legacy -S",
	"executable file not found in $PATH":                examineVariable + "=none iptables-wrapper nosuch",
	"is not one of auto, nft, legacy": "IPTABLES_WRAPPER_BACKEND=nf_tables iptables -S; test $? = 2 || echo another " +
		"status",
}

const oldProgram = "LD_LIBRARY_PATH=$(echo $OLD/usr/lib/*) XTABLES_LIBDIR=$(echo $OLD/usr/lib/*/xtables) " +
	"$OLD/usr/sbin/xtables-nft-multi "

const setsockopt = "strace -o trace -e trace=setsockopt -e inject=setsockopt:error="

// comments makes rules whose library is then missing.
const comments = "for b in nft legacy; do iptables-$b -A INPUT -m comment --comment c; done; mkdir none; " +
	"XTABLES_LIBDIR=$PWD/none "

const getsockopt = "strace -o trace -e trace=getsockopt -e inject=getsockopt:error="

// owned makes the tables of iptables somebody's, with the flag owner.
const owned = `mkfifo fifo
nft -i <fifo >/dev/null 2>&1 &
exec 5>fifo
{
	echo 'add table ip filter { flags owner; }'
	for hook in input forward output; do
		chain=$(echo $hook | tr a-z A-Z)
		echo "add chain ip filter $chain { type filter hook $hook priority 0; policy accept; }"
	done
} >&5
until nft list chain ip filter OUTPUT >/dev/null 2>&1; do sleep 0.02; done
`

// Each message of both lists appears for real, or the page says where it comes from.
func TestMessages(t *testing.T) {
	old := host.OldIptables(t)
	if !host.Contain(t) {
		return
	}
	host.Check(t, os.Setenv("OLD", strings.TrimSuffix(old, "/usr/sbin/xtables-nft-multi")))
	c := newContainer(t)
	inPage := map[string]bool{}
	for _, row := range listed(t) {
		begin := messagesOf.FindString(row)
		for _, text := range quotes(begin) {
			inPage[text] = true
			commands := printed[text]
			if commands == "" && strings.Contains(row, "quoted from ") {
				continue
			}
			t.Run(text, func(t *testing.T) {
				c.t = t
				output := c.shell(commands)
				if !strings.Contains(output, text) || strings.Contains(output, "another status") {
					t.Errorf("nothing prints it: add commands to printed that do, or end its line with "+
						"\"quoted from\" and the place; printed was: %s", output)
				}
			})
		}
	}
	for text := range printed {
		if !inPage[text] {
			t.Errorf("no list has %q", text)
		}
	}
}

// listed are the lines of the page that begin with a message.
func listed(t *testing.T) (lines []string) {
	t.Helper()
	page := string(host.Read(t, troubleshooting))
	_, rest, _ := strings.Cut(page, "\n## Messages\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	for line := range strings.Lines(section) {
		if messagesOf.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// messagesOf matches the messages at the beginning of a line.
var messagesOf = regexp.MustCompile("^- (?:(?:``.+?``|`.+?`)(?:, )?)+:")

// quotes are the messages in a text. One that has a backtick itself is between two.
func quotes(text string) (texts []string) {
	for _, found := range quote.FindAllStringSubmatch(text, -1) {
		texts = append(texts, strings.TrimSpace(found[1]+found[2]))
	}
	return texts
}

var quote = regexp.MustCompile("``(.+?)``|`(.+?)`")

const troubleshooting = "../../docs/troubleshooting.md"

// shell runs commands in a situation, most of which fail, and returns what they print.
func (c container) shell(commands string) string {
	var output []byte
	c.apart(func() {
		check(unix.Mount("none", "/run", "tmpfs", 0, "mode=755"))
		check(os.Mkdir("/run/dir", 0o755))
		check(unix.Mount("none", "/run/dir", "tmpfs", 0, "mode=755"))
		sh := exec.Command("sh", "-c", commands)
		sh.Dir = "/run/dir"
		output, _ = sh.CombinedOutput()
	})
	return string(output)
}

// The page has each message that doctor looks for, with its finding.
func TestPageHasMessages(t *testing.T) {
	codes := doctor.Codes()
	rows := listed(t)
	for text, code := range doctor.Messages() {
		has := slices.ContainsFunc(rows, func(row string) bool {
			return strings.Contains(row, text) && strings.Contains(row, "(#"+code+")")
		})
		if !has || !slices.Contains(codes, code) {
			t.Errorf("%s: add a line with `%s` to Messages that links to [%s](#%s)", troubleshooting, text, code, code)
		}
	}
}

// The page has a paragraph for each code.
func TestParagraphs(t *testing.T) {
	page := string(host.Read(t, troubleshooting))
	for _, code := range doctor.Codes() {
		if !strings.Contains(page, "\n### "+code+"\n") {
			t.Errorf("docs/troubleshooting.md has no heading \"### %s\"", code)
		}
	}
}
