// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// An event is something that happens on the host, or that somebody does in the container.
type event struct {
	*kind
	mode   string
	family int // 0 is IPv4
	user   bool
	number int    // of rules, or of this event's addresses
	strike string // which system call fails, and how
}

// A kind of event, and how a shell in the container makes it happen.
type kind struct {
	weight  int
	class   class
	command string
	change  func(h host, e event) // what it does to the host's backend of mode
}

// A class is what the model has to know of an event.
type class int

const (
	onHost class = iota
	reads
	changes // and does not add
	adds
	refused   // by iptables itself, after it would have added
	held      // adds while another user has the lock
	overrides // adds
	meanwhile // five calls add while rules of the host arrive
	disturbed // a system call fails, the caller has no rights, or it is killed
	detects
	selects
	selectsMode
	resets
	restarts
)

const rule = " -A INPUT -j ACCEPT -s ADDRESS"

func arrive(number int) func(h host, e event) {
	return func(h host, e event) { h[e.mode].rules[0] += max(number, e.number) }
}

// add is what a client's rule does to the backend that ran.
func add(n int) func(h host, e event) {
	return func(h host, e event) { h[e.mode].rules[e.family] += n }
}

// kinds, and how frequent they are. What is rare on real hosts is frequent here.
var kinds = []*kind{
	{6, onHost, "rules MODE NUMBER", arrive(0)},
	{6, onHost, "chain KUBE-IPTABLES-HINT MODE", func(h host, e event) { h[e.mode].hint = [2]bool{true, true} }},
	{4, onHost, "chain KUBE-KUBELET-CANARY MODE", func(h host, e event) { h[e.mode].canary = [2]bool{true, true} }},
	{3, onHost, "gone MODE", func(h host, e event) { h[e.mode].hint, h[e.mode].canary = [2]bool{}, [2]bool{} }},
	{3, onHost, "docker MODE", func(h host, e event) { h[e.mode].docker = true }},
	{1, onHost, "native firewalld", func(h host, _ event) { h["nft"].firewalld = true }},
	{1, onHost, "native mine", func(host, event) {}},
	{3, reads, "CALL --version", nil},
	{3, reads, "USER FAMILY-save", nil},
	{3, reads, "CALL -S", nil},
	{1, reads, `printf '*filter\n-A INPUT -j ACCEPT\nCOMMIT\n' | USER FAMILY-restore --test`, nil},
	{4, changes, "CALL -F", func(h host, e event) { h[e.mode].rules[e.family] = 0 }},
	{3, changes, "CALL -t mangle -X", func(h host, e event) {
		h[e.mode].hint[e.family], h[e.mode].canary[e.family] = false, false
	}},
	{12, adds, "CALL" + rule, add(1)},
	{1, adds, "CALL -P FORWARD DROP", add(0)},
	{1, adds, "CALL -N MINE-NUMBER", add(0)},
	{6, adds, `printf '*filter\n-A INPUT -j ACCEPT -s ADDRESS\nCOMMIT\n' | USER FAMILY-restore -w --noflush`, add(1)},
	{3, adds, "together PREFIX CALL -A INPUT -j ACCEPT", add(5)},
	{4, refused, "CALL" + rule + " --bogus", nil},
	{3, held, "locked CALL" + rule, add(1)},
	{5, overrides, "OVERRIDE=MODE FAMILY -w" + rule, add(1)},
	{3, meanwhile, "rules MODE 6 & together PREFIX FAMILY -w -A INPUT -j ACCEPT; ran=$?; wait; (exit $ran)", nil},
	{3, disturbed, "powerless FAMILY -w" + rule, nil},
	{10, disturbed, "strike STRIKE FAMILY -w" + rule, nil},
	{5, detects, "iptables-wrapper detect --strict", nil},
	{3, selects, "iptables-wrapper select", nil},
	{2, selectsMode, "iptables-wrapper select --mode MODE", nil},
	{1, resets, "iptables-wrapper reset", nil},
	{2, restarts, "", nil},
}

func (e event) tables() string { return []string{"iptables", "ip6tables"}[e.family] }

// prefix is how the addresses of the rules begin that the event adds. Each is followed by a digit.
func (e event) prefix() string {
	if e.family == 1 {
		return fmt.Sprintf("2001:db8::%x:", e.number)
	}
	return fmt.Sprintf("10.9.%d.", e.number)
}

// text is the event's command.
func (e event) text() string {
	user := ""
	if e.user {
		user = "user "
	}
	return strings.NewReplacer(
		"CALL", user+e.tables()+" -w",
		"USER ", user,
		"FAMILY", e.tables(),
		"ADDRESS", e.prefix()+"1",
		"PREFIX", e.prefix(),
		"OVERRIDE", "IPTABLES_WRAPPER_MODE",
		"MODE", e.mode,
		"NUMBER", fmt.Sprint(e.number),
		"STRIKE", e.strike,
	).Replace(e.command)
}

// A history is what happens on a host and in a container.
type history struct {
	place
	events []event
}

func one[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// random returns the history of a seed.
func random(seed uint64) history {
	r := rand.New(rand.NewPCG(seed, 30))
	h := history{place: place{root: one(r, "rw", "ro"), dev: one(r, "own", "own", "own", "host")}}
	var deck []*kind
	for _, k := range kinds {
		deck = append(deck, slices.Repeat([]*kind{k}, k.weight)...)
	}
	users := one(r, []bool{false}, []bool{false, false, true})
	for number := range 5 + r.IntN(8) {
		e := event{kind: one(r, deck...), mode: one(r, "nft", "legacy"), family: one(r, 0, 0, 0, 1), number: number + 1}
		switch {
		case e.class == onHost:
			e.number = 1 + r.IntN(12) // of rules
		case e.class <= adds:
			e.user = one(r, users...)
		case e.class == disturbed:
			e.strike = strike(r)
		}
		h.events = append(h.events, e)
	}
	return h
}

// strike is how one or more system calls of a call fail, or before which it is killed.
func strike(r *rand.Rand) string {
	call := one(r, "socket", "openat", "getsockopt", "recvfrom", "sendto", "symlinkat", "renameat", "flock",
		"execve", "newfstatat")
	how := one(r, "error=ENFILE", "error=ENOMEM", "error=EINTR", "error=EAGAIN", "error=EPERM", "error=EIO",
		"error=EROFS", "error=ENOSPC", "signal=KILL", "signal=KILL")
	first := 1 + r.IntN(4)
	// EINTR for ever would be a call for ever
	return fmt.Sprintf("%s %s:when=%d..%d", call, how, first, first+r.IntN(6))
}
