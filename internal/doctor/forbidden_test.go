// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"regexp"
	"testing"
)

// forbiddenWord is an option or a word of a command that changes something.
var forbiddenWord = regexp.MustCompile(`^-[ADFINPXREZ]|^--(append|insert|new|policy|replace|rename|zero|set)|` +
	`(?i)restore|flush|delete|--set`)

// changes is a command of nft that does not list.
var changes = regexp.MustCompile("nft (add|create|insert|replace|rename|reset|-f)")

// ours are the product's own commands, and options of docker run, which a person reads as a Pod's spec.
var ours = regexp.MustCompile(`iptables-wrapper (install|reset|select|detect|doctor)( --?[a-z]+( [/a-z0-9][^\s.]*)?)*|` +
	`docker run( --[a-z-]+[= ][\w/.-]+)+`)

// commandWithFlag is a word that a flag or a table follows.
var commandWithFlag = regexp.MustCompile(`([^\s]+)((?: -{1,2}[a-zA-Z][^\s]*(?: [^-\s][^\s]*)?)+| table (?:ip|ip6|inet) )`)

// allowedCommands show something, or are the product's own.
var allowedCommands = map[string]bool{
	"iptables": true, "ip6tables": true,
	"iptables-save": true, "ip6tables-save": true,
	"iptables-nft-save": true, "ip6tables-nft-save": true, "iptables-legacy-save": true, "ip6tables-legacy-save": true,
	"ls": true, "uname": true, "option": true, "grep": true, "list": true, "detect": true, "install": true, "reset": true, "select": true, "doctor": true,
}

// The test for what doctor prints finds what must not be there.
func TestForbidden(t *testing.T) {
	for text, bad := range map[string]bool{
		"run iptables -F":                             true,
		"iptables-legacy -t nat -D PREROUTING 1":      true,
		"`iptables -P FORWARD ACCEPT`":                true,
		"iptables-nft-restore <file":                  true,
		"nft flush ruleset":                           true,
		"nft delete table ip filter":                  true,
		"update-alternatives --set iptables X":        true,
		"nft add table ip filter":                     true,
		"modprobe -a ip_tables":                       true,
		"rm -r /run/xtables.lock":                     true,
		"ipset --list":                                true,
		"iptables-legacy-save -c":                     false,
		"nft list ruleset":                            false,
		"iptables-wrapper detect -o table":            false,
		"In the image, run iptables-wrapper install.": false,
		"iptables -S":                                 false,
		"ls -ld /run/xtables.lock":                    false,
	} {
		if got := forbiddenIn(text); len(got) > 0 != bad {
			t.Errorf("%q: %q", text, got)
		}
	}
}
