// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"regexp"
	"testing"
)

// shows are the commands that doctor may print, with their arguments: they show something, or are the product's own.
// docker run is for people who write no Pod's spec.
var shows = regexp.MustCompile(`ls -l[dL]? /\S+|uname -r|grep( -e \w+)+ /proc/self/status|nft list (ruleset|table ip6? ` +
	`[a-z]+)|ip6?tables (--version|-S|-[mj] \w+( --[a-z-]+)?( [a-z0-9-]+)? -h|-w 1 -t [a-z]+ -S)|ip6?tables-save -t ` +
	`[a-z]+|ip6?tables-(nft|legacy)-save -c|iptables-wrapper (detect|install|reset|select|doctor)( --?[a-z]+ ` +
	`[/\w-]+\w)*|cat /proc/\S+|-[mj] \w+|df -i|ulimit -[un]|nsenter --pid|install --force|docker run( --[a-z-]+[= ` +
	`][\w/.-]+)+|option -w`)

// aCommand is a word that a flag, a table or input follows, or a command that mostly changes something.
var aCommand = regexp.MustCompile(`\S+ +(--?[a-zA-Z]|table (ip|ip6|inet) |<)|tables[a-z-]*-restore ` +
	`+[/<-]|\b(ipset|modprobe|rm|update-alternatives) +\S+|\bnft ` +
	`(flush|delete|destroy|add|create|insert|replace|rename|reset)\b`)

// forbiddenIn returns the commands in texts that are not of those which show something.
func forbiddenIn(texts ...string) (found []string) {
	for _, text := range texts {
		found = append(found, aCommand.FindAllString(shows.ReplaceAllString(text, "..."), -1)...)
	}
	return found
}

// The test for what doctor prints finds what must not be there, and only that.
func TestForbidden(t *testing.T) {
	for text, bad := range map[string]bool{
		"run iptables -F":                                             true,
		"iptables-legacy -t nat -D PREROUTING 1":                      true,
		"iptables -w 1 -t nat -D PREROUTING 1":                        true,
		"iptables -S; iptables -F":                                    true,
		"`iptables -P FORWARD ACCEPT`":                                true,
		"iptables-nft-restore <file":                                  true,
		"run iptables-restore /tmp/rules":                             true,
		"iptables-restore --noflush":                                  true,
		"nft flush ruleset":                                           true,
		"nft delete table ip filter":                                  true,
		"nft add table ip filter":                                     true,
		"update-alternatives --set iptables X":                        true,
		"modprobe ip_tables":                                          true,
		"rm -r /run/xtables.lock":                                     true,
		"ipset --list":                                                true,
		"kubectl -n kube-system get pods":                             true,
		"iptables-legacy-save -c":                                     false,
		"nft list ruleset":                                            false,
		"iptables-wrapper detect -o table":                            false,
		"run iptables-wrapper reset --dir /usr/local/sbin":            false,
		"iptables -S":                                                 false,
		"iptables-save -t mangle":                                     false,
		"nft list table ip filter":                                    false,
		"ls -ld /run/xtables.lock":                                    false,
		"docker run --cap-add=NET_ADMIN --cap-add=NET_RAW":            false,
		"Or delete the Pod.":                                          false,
		"these lead to nothing: iptables-restore, ip6tables-restore.": false,
	} {
		if got := forbiddenIn(text); len(got) > 0 != bad {
			t.Errorf("%q: %q", text, got)
		}
	}
}
