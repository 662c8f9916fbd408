// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import "strings"

// Life is one life of a container in one network namespace. Two containers that share the namespace and were started
// within one clock tick look like one. The zero Life stands for one that is not known.
type Life struct {
	Netns string // the inode of the network namespace
	Start string // of process 1, in clock ticks since boot
	Boot  string // the beginning of the boot ID; "" where runtimes mask it by /dev/null
}

// bootLength is how much of the boot ID tells boots apart.
const bootLength = 8

// Known reports whether there is anything that a memory can be about.
func (l Life) Known() bool { return l.Start != "" }

// String returns "4026531840.4711.0badcafe".
func (l Life) String() string { return l.Netns + "." + l.Start + "." + l.Boot }

// parseLife is the reverse.
func parseLife(text string) (l Life, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Life{}, false
	}
	l = Life{Netns: parts[0], Start: parts[1], Boot: parts[2]}
	hex := strings.Trim(l.Boot, "0123456789abcdef") == ""
	return l, digits(l.Netns) && digits(l.Start) && hex && len(l.Boot) <= bootLength
}

// sameNamespace reports whether two lives share a network namespace, and thereby its rules.
func (l Life) sameNamespace(other Life) bool {
	return l.Netns == other.Netns && l.Boot == other.Boot
}
