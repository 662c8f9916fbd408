// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// An event is something that happens on the host, or that a client does in the container.
type event struct {
	*kind
	who    int    // 0: root, 1: user 65534 with two capabilities
	mode   string // a backend
	number int    // of the rule that it adds, or of rules
	tables string // iptables, ip6tables
	strike string // which system call fails, and how
}

// A kind of event, and how a shell in the container makes it happen. CALL is the caller's "iptables -w" or "ip6tables
// -w".
type kind struct {
	weight  int
	class   class
	command string
}

// A class is what the model has to know of an event.
type class int

const (
	onHost  class = iota
	hostile       // another user in the container
	reads
	checks // whether an own rule is there
	removes
	changes
	adjusts // adds, and not a rule
	adds    // from here on, with an address of its own
	overrides
	refused   // by iptables
	powerless // without CAP_NET_ADMIN
	momentary // a system call fails that may succeed the next time
	permanent // one fails that always will
	killed
	strict // detect
	selects
	selectsMode
	resets
	restarts
)

const rule = " -A INPUT -j ACCEPT -s ADDRESS"

var (
	hostRules = &kind{5, onHost, "rules MODE NUMBER"}
	hint      = &kind{6, onHost, "chain KUBE-IPTABLES-HINT MODE"}
	canary    = &kind{4, onHost, "chain KUBE-KUBELET-CANARY MODE"}
	gone      = &kind{3, onHost, "kubelet_gone MODE"}
	plain     = &kind{8, adds, "CALL" + rule}
	busy      = &kind{0, adds, "busy CALL" + rule}
	check     = &kind{0, checks, "CALL -C" + rule[3:]}
	remove    = &kind{0, removes, "CALL -D" + rule[3:]}
	// Five calls, while rules of the host arrive.
	meanwhile = &kind{3, adds, "rules MODE 6 & together 5 ADDRESSES CALL -A INPUT -j ACCEPT; ran=$?; wait; (exit $ran)"}
)

// kinds, and how frequent they are. What is rare on real hosts is frequent here.
var kinds = []*kind{
	hostRules, hint, canary, gone, plain, meanwhile,
	{3, onHost, "flushed MODE"},
	{1, onHost, "native"},
	{1, hostile, "taken MODE"},
	{1, hostile, "removed"},
	{3, reads, "USER FAMILY --version"},
	{3, reads, "USER FAMILY-save"},
	{3, reads, "CALL -S"},
	{1, reads, `printf '*filter\n-A INPUT -j ACCEPT\nCOMMIT\n' | USER FAMILY-restore --test`},
	{13, checks, ""}, // or removes
	{4, changes, "CALL -F"},
	{3, changes, "CALL -t mangle -X"},
	{1, adjusts, "CALL -P FORWARD DROP"},
	{1, adjusts, "CALL -N MINE-NUMBER"},
	{6, adds, `printf '*filter\n-A INPUT -j ACCEPT -s ADDRESS\nCOMMIT\n' | USER FAMILY-restore -w --noflush`},
	{3, adds, "locked CALL" + rule},
	{3, adds, "together 5 ADDRESSES CALL -A INPUT -j ACCEPT"},
	{4, refused, "CALL" + rule + " --bogus"},
	{3, powerless, "powerless FAMILY -w" + rule},
	{5, overrides, "override MODE CALL" + rule},
	{5, momentary, "strike STRIKE FAMILY -w" + rule},
	{2, permanent, "strike STRIKE FAMILY -w" + rule},
	{3, killed, "strike STRIKE FAMILY -w" + rule},
	{5, strict, "iptables-wrapper detect --strict"},
	{3, selects, "iptables-wrapper select"},
	{2, selectsMode, "iptables-wrapper select --mode MODE"},
	{1, resets, "iptables-wrapper reset"},
	{2, restarts, ":"},
	{1, restarts, ": root"},
	{1, restarts, ": all"},
}

// text is the event's command.
func (e event) text() string {
	user := []string{"", "user "}[e.who]
	address := e.addresses()[0]
	return strings.NewReplacer(
		"CALL", user+e.tables+" -w",
		"USER ", user,
		"FAMILY", e.tables,
		"ADDRESSES", strings.TrimSuffix(address, "1"),
		"ADDRESS", address,
		"MODE", e.mode,
		"NUMBER", strconv.Itoa(e.number),
		"STRIKE", e.strike,
	).Replace(e.command)
}

// addresses are those of the rules that the event adds.
func (e event) addresses() (list []string) {
	format, last := "10.9.%d.%d", 1
	if e.tables == "ip6tables" {
		format = "2001:db8::%x:%d"
	}
	if strings.Contains(e.command, "together") {
		last = 5
	}
	for i := range last {
		list = append(list, fmt.Sprintf(format, e.number, i+1))
	}
	return list
}

var modes = []string{"nft", "legacy"}

func one[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// A history is what happens on a host and in a container.
type history struct {
	settings
	events []event
	broken *violation // by the last event
	lie    []string   // variables that are not as the model takes them
}

// random returns the history of a seed.
func random(seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 29))
	s := settings{Root: one(r, "rw", "ro"), Dev: one(r, "own", "own", "own", "host"),
		Shm: one(r, "sticky", "sticky", "sticky", "plain", "full", "absent"),
		Run: one(r, "rw", "rw", "ro"), Init: one(r, 0, 0, 0, 65534), Group: one(r, 0, 65534)}
	var events []event
	if r.IntN(2) == 0 {
		events = append(events, event{
			kind:   one(r, hostRules, hostRules, hint, canary),
			mode:   one(r, modes...),
			number: 1 + r.IntN(8),
		})
	}
	large := r.IntN(16) == 0
	if mode := r.IntN(2); large {
		events = append(events, event{kind: hostRules, mode: modes[mode], number: 4000},
			event{kind: hostRules, mode: modes[1-mode], number: 1500})
	}
	var added []event
	users, number := one(r, []int{0}, []int{0, 0, 1}), 0
	next := func(k *kind) {
		number++
		e := event{
			kind:   k,
			mode:   one(r, modes...),
			number: number,
			tables: one(r, "iptables", "iptables", "iptables", "ip6tables"),
			who:    one(r, users...),
		}
		switch {
		case k == hostRules:
			e.number = 1 + r.IntN(8)
		case k.class == checks && len(added) > 0:
			e = one(r, added...)
			e.kind = one(r, check, remove)
		case k.class == checks:
			e.kind = plain
		case k.class == adds && large:
			e.kind = busy
		case k.class >= powerless:
			e.who, e.strike = 0, strike(r, k.class)
		}
		if e.class == adds && len(e.addresses()) == 1 {
			added = append(added, e)
		}
		events = append(events, e)
	}
	var deck []*kind
	for _, k := range kinds {
		deck = append(deck, slices.Repeat([]*kind{k}, k.weight)...)
	}
	for range 3 + r.IntN(7) {
		k := one(r, deck...)
		next(k)
		last := events[len(events)-1]
		// What it left behind shows when the host changes.
		switch {
		case k == hint || k == canary:
			next(one(r, plain, plain, check))
			next(gone)
			events[len(events)-1].mode = last.mode
			fallthrough
		case k.class > hostile && r.IntN(3) == 0, k.class >= overrides && k.class <= killed:
			next(hostRules)
			arrived := &events[len(events)-1]
			arrived.number += 6 // more than there may be in the other backend
			arrived.mode = "legacy"
			if last.mode == "legacy" && (k.class == onHost || k.class == overrides) {
				arrived.mode = "nft"
			}
			next(one(r, plain, plain, check))
		}
	}
	return &history{settings: s, events: events}
}

// strike is how one or more system calls of a call fail, or where it is killed.
func strike(r *rand.Rand, c class) string {
	call := one(r, "socket", "openat", "getsockopt", "recvfrom", "sendto")
	if c != momentary {
		call = one(r, call, "readlinkat", "symlinkat", "renameat", "flock", "execve", "newfstatat")
	}
	how := map[class]string{momentary: "error=" + one(r, "ENFILE", "EMFILE", "ENOMEM", "ENOBUFS", "EINTR", "EAGAIN"),
		permanent: "error=" + one(r, "EPERM", "EACCES", "ENOSYS", "EIO", "EROFS", "ENOSPC"), killed: "signal=KILL"}
	first := 1 + r.IntN(4)
	// EINTR for ever would be a call for ever
	return fmt.Sprintf("%s %s:when=%d..%d", call, how[c], first, first+r.IntN(6))
}
