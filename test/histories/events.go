// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/test/oracle"
)

// An event is something that happens on the host, or that somebody does in the container.
type event struct {
	*kind
	backend string
	family  int
	user    bool
	number  int    // of rules, or of this event's addresses
	strike  string // which system call fails, and how
}

// A kind of event, and how a shell in the container makes it happen.
type kind struct {
	weight  int
	class   class
	command string
	change  func(w *world, e event) // what it does to the host, in the event's backend
}

// A class is what the oracle has to know of an event.
type class int

const (
	onHost    class = iota
	calls           // of root, or of another user
	refused         // by iptables itself
	locked          // while another user has the lock
	apart           // with mounts of its own
	overrides       // by the variable
	powerless       // without CAP_NET_ADMIN
	meanwhile       // five at once, while rules of the host arrive
	disturbed       // a system call fails, or it is killed
	detects
	selects
	selectsBackend
	resets
	restarts
)

const rule = " -A INPUT -j ACCEPT -s ADDRESS"

func nothing(*world, event) {}

// add adds rules to the tables of the event's family.
func add(n int) func(w *world, e event) {
	return func(w *world, e event) { w.rules[e.backend][e.family] += n }
}

// appear makes a marker appear, in the event's backend and some families.
func appear(kind int, families ...int) func(w *world, e event) {
	return func(w *world, e event) {
		for _, family := range families {
			w.has(e.backend, kind, family, oracle.Yes)
		}
	}
}

// flushMangle deletes kubelet's chains of some families.
func flushMangle(w *world, backend string, families ...int) {
	for _, family := range families {
		w.has(backend, oracle.Hint, family, oracle.No)
		w.has(backend, oracle.Canary, family, oracle.No)
	}
}

// kinds, and how frequent they are. What is rare on real hosts is frequent here.
var kinds = []*kind{
	{6, onHost, "rules BACKEND NUMBER", func(w *world, e event) { w.rules[e.backend][oracle.IPv4] += e.number }},
	{6, onHost, "chain KUBE-IPTABLES-HINT BACKEND", appear(oracle.Hint, oracle.IPv4, oracle.IPv6)},
	{4, onHost, "chain KUBE-KUBELET-CANARY BACKEND", appear(oracle.Canary, oracle.IPv4, oracle.IPv6)},
	{3, onHost, "gone BACKEND", func(w *world, e event) { flushMangle(w, e.backend, oracle.IPv4, oracle.IPv6) }},
	{3, onHost, "docker BACKEND", appear(oracle.Program, oracle.IPv4)},
	{1, onHost, "native ip kube-proxy 0", func(w *world, _ event) {
		w.has(oracle.NFT, oracle.Program, oracle.IPv4, oracle.Yes)
	}},
	{2, onHost, "native inet firewalld NUMBER", nothing},
	{3, calls, "CALL --version", nothing},
	{3, calls, "USER FAMILY-save", nothing},
	{3, calls, "CALL -S", nothing},
	{1, calls, `printf '*filter\n-A INPUT -j ACCEPT\nCOMMIT\n' | USER FAMILY-restore --test`, nothing},
	{4, calls, "CALL -F", func(w *world, e event) { w.rules[e.backend][e.family] = 0 }},
	{3, calls, "CALL -t mangle -X", func(w *world, e event) { flushMangle(w, e.backend, e.family) }},
	{12, calls, "CALL" + rule, add(1)},
	{1, calls, "CALL -P FORWARD DROP", nothing},
	{1, calls, "CALL -N MINE-NUMBER", nothing},
	{6, calls, `printf '*filter\n-A INPUT -j ACCEPT -s ADDRESS\nCOMMIT\n' | USER FAMILY-restore -w --noflush`, add(1)},
	{3, calls, "together PREFIX CALL -A INPUT -j ACCEPT", add(5)},
	{4, refused, "CALL" + rule + " --bogus", nothing},
	{3, locked, "locked CALL" + rule, add(1)},
	{3, apart, "unshare --mount FAMILY -w" + rule, add(1)},
	{5, overrides, "OVERRIDE=BACKEND FAMILY -w" + rule, add(1)},
	{3, powerless, "powerless FAMILY -w" + rule, nothing},
	{3, meanwhile, "rules BACKEND 6 & together PREFIX FAMILY -w -A INPUT -j ACCEPT; " +
		"ran=$?; wait; (exit $ran)", nothing},
	{10, disturbed, "strike STRIKE FAMILY -w" + rule, nothing},
	{5, detects, "iptables-wrapper detect --strict", nothing},
	{3, selects, "iptables-wrapper select STRICT", nothing},
	{2, selectsBackend, "iptables-wrapper select BACKEND", nothing},
	{1, resets, "iptables-wrapper reset", nothing},
	{2, restarts, "", nothing},
}

func (e event) tables() string { return []string{"iptables", "ip6tables"}[e.family] }

// prefix is how the addresses of the rules begin that the event adds. Each is followed by a digit.
func (e event) prefix() string {
	if e.family == oracle.IPv6 {
		return fmt.Sprintf("2001:db8::%x:", e.number)
	}
	return fmt.Sprintf("10.9.%d.", e.number)
}

// strict is whether the event is strict, which half of them are.
func (e event) strict() bool { return e.backend == oracle.Legacy }

// text is the event's command.
func (e event) text() string {
	user, strict := "", ""
	if e.user {
		user = "user "
	}
	if e.strict() {
		strict = "--strict"
	}
	return strings.NewReplacer(
		"CALL", user+e.tables()+" -w",
		"USER ", user,
		"FAMILY", e.tables(),
		"ADDRESS", e.prefix()+"1",
		"PREFIX", e.prefix(),
		"OVERRIDE", "IPTABLES_WRAPPER_BACKEND",
		"BACKEND", e.backend,
		"NUMBER", fmt.Sprint(e.number),
		"STRIKE", e.strike,
		" STRICT", " "+strict,
	).Replace(e.command)
}

// A history is what happens on a host and in a container.
type history struct {
	place
	events []event
}

// A place is what the container is like. Of a shared root, /usr/sbin is another user's, and others can write it.
type place struct{ root, dev, missing string }

func (p place) container() oracle.Container {
	return oracle.Container{Writable: p.root != "ro", OwnDev: p.dev == "own", Missing: p.missing}
}

func one[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// random returns the history of a seed.
func random(seed uint64) history {
	r := rand.New(rand.NewPCG(seed, 30))
	h := history{place: place{
		root:    one(r, "rw", "ro", "shared"),
		dev:     one(r, "own", "own", "own", "host"),
		missing: one(r, "", "", "", "", oracle.NFT, oracle.Legacy),
	}}
	var deck []*kind
	for _, k := range kinds {
		deck = append(deck, slices.Repeat([]*kind{k}, k.weight)...)
	}
	users := one(r, []bool{false}, []bool{false, false, true})
	for number := range 5 + r.IntN(8) {
		e := event{
			kind:    one(r, deck...),
			backend: one(r, oracle.NFT, oracle.Legacy),
			family:  one(r, oracle.IPv4, oracle.IPv4, oracle.IPv4, oracle.IPv6),
			number:  number + 1,
		}
		switch e.class {
		case onHost:
			e.number = 1 + r.IntN(12) // of rules
		case calls:
			e.user = one(r, users...)
		case disturbed:
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
