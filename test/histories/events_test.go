// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// An event is something that happens on the host, or that a client does in the container.
type event struct {
	kind kind
	user bool   // user 65534 with two capabilities; otherwise root
	mode string // a backend
	n    int    // the number of a rule or of rules
	v6   bool
	with string // how the call is disturbed
}

type kind int

const (
	// On the host.
	hint kind = iota
	canary
	kubeletGone
	rules
	flushed
	native
	hostile
	// A client's calls that read, change or add something.
	version
	save
	list
	checked
	removed
	flush
	unchain
	add
	restore
	policy
	burst
	burstAndRules // while rules of the host arrive in a backend
	refused
	powerless
	override
	// A call that is disturbed.
	momentary
	permanent
	killed
	// A person's commands, and a new life.
	strict
	selects
	selectMode
	reset
	restart
)

// source is the address by which a rule is found again.
func (e event) source() string {
	if e.v6 {
		return fmt.Sprintf("2001:db8::%x", e.n)
	}
	return fmt.Sprintf("10.9.%d.0", e.n)
}

const together = 5

// sources are the addresses of all rules that the event adds.
func (e event) sources() (list []string) {
	if e.kind != burst && e.kind != burstAndRules {
		return []string{e.source()}
	}
	for i := range together {
		list = append(list, fmt.Sprint(strings.TrimSuffix(e.source(), "0"), i+1))
	}
	return list
}

// command is how a shell in the container makes the event happen.
func (e event) command() string {
	tables := "iptables"
	if e.v6 {
		tables = "ip6tables"
	}
	caller := ""
	if e.user {
		caller = "user "
	}
	rule := tables + " -w -A INPUT -j ACCEPT -s " + e.source()
	switch e.kind {
	case hint:
		return "chain KUBE-IPTABLES-HINT " + e.mode
	case canary:
		return "chain KUBE-KUBELET-CANARY " + e.mode
	case kubeletGone:
		return "kubelet_gone " + e.mode
	case rules:
		return fmt.Sprintf("rules %s %d", e.mode, e.n)
	case flushed:
		return "flushed " + e.mode
	case native:
		return "native"
	case hostile:
		if e.with == "removed" {
			return "removed"
		}
		return "taken " + e.mode
	case version:
		return caller + tables + " --version"
	case save:
		return caller + tables + "-save"
	case list:
		return caller + tables + " -w -S"
	case checked:
		return strings.Replace(caller+rule, "-A", "-C", 1)
	case removed:
		return strings.Replace(caller+rule, "-A", "-D", 1)
	case flush:
		return caller + tables + " -w -F"
	case unchain:
		return caller + tables + " -w -t mangle -X"
	case add:
		return strings.TrimSpace(e.with + " " + caller + rule)
	case restore:
		return fmt.Sprintf(`printf '*filter\n-A INPUT -j ACCEPT -s %s\nCOMMIT\n' | %s%s-restore -w --noflush`, e.source(), caller, tables)
	case policy:
		return caller + tables + " -w -P FORWARD DROP"
	case burst, burstAndRules:
		prefix := strings.TrimSuffix(e.source(), "0")
		command := fmt.Sprintf("together %d %s %s%s -w -A INPUT -j ACCEPT", together, prefix, caller, tables)
		if e.kind == burstAndRules {
			return fmt.Sprintf("rules %s 6 & %s; ran=$?; wait; (exit $ran)", e.mode, command)
		}
		return command
	case refused:
		return caller + rule + " --bogus"
	case powerless:
		return "powerless " + rule
	case override:
		return caller + "env IPTABLES_WRAPPER_MODE=" + e.mode + " " + rule
	case momentary, permanent, killed:
		return "strike " + e.with + " " + rule
	case strict:
		return "iptables-wrapper detect --strict"
	case selects:
		return "iptables-wrapper select"
	case selectMode:
		return "iptables-wrapper select --mode " + e.mode
	case reset:
		return "iptables-wrapper reset"
	}
	return ":" // a new life is made outside
}

var modes = []string{"nft", "legacy"}

func one[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// history is a random one. What is rare on real hosts is frequent here.
func history(seed uint64) (s settings, events []event) {
	r := rand.New(rand.NewPCG(seed, 29))
	s = settings{Root: one(r, "rw", "ro"), Dev: one(r, "own", "own", "own", "host"), Shm: one(r, "sticky", "sticky", "sticky", "plain", "full", "absent"),
		Run: one(r, "rw", "rw", "ro"), Init: one(r, 0, 0, 0, 65534), Group: one(r, 0, 65534)}
	for range r.IntN(3) {
		events = append(events, event{kind: one(r, rules, rules, rules, hint, canary, native), mode: one(r, modes...), n: 1 + r.IntN(8)})
	}
	g := generator{Rand: r, large: r.IntN(16) == 0, users: r.IntN(2) == 0}
	if g.large {
		mode := r.IntN(2)
		events = append(events, event{kind: rules, mode: modes[mode], n: 4000}, event{kind: rules, mode: modes[1-mode], n: 1500})
	}
	for range 3 + r.IntN(8) {
		e := g.next()
		events = append(events, e)
		if e.kind > hostile && r.IntN(3) == 0 { // what it left behind shows when the host changes
			events = append(events, event{kind: rules, mode: one(r, "nft", "legacy", "legacy"), n: 1 + r.IntN(8)})
			if len(g.added) > 0 && r.IntN(2) == 0 {
				events = append(events, g.again())
			} else {
				events = append(events, g.adds())
			}
		}
	}
	return s, events
}

type generator struct {
	*rand.Rand
	large, users bool
	number       int
	added        []event
}

func (g *generator) fresh() event {
	g.number++
	return event{mode: one(g.Rand, modes...), n: g.number, v6: g.IntN(4) == 0, user: g.users && g.IntN(3) == 0}
}

// adds is a plain call that adds a rule.
func (g *generator) adds() event {
	e := g.fresh()
	if e.kind = one(g.Rand, add, add, restore); e.kind == add {
		switch {
		case g.large:
			e.with = "busy"
		case g.IntN(4) == 0:
			e.with = "locked"
		}
	}
	g.added = append(g.added, e)
	return e
}

// again is about a rule that was added before.
func (g *generator) again() event {
	e := one(g.Rand, g.added...)
	e.kind, e.with = one(g.Rand, checked, removed), ""
	return e
}

func (g *generator) next() event {
	e := g.fresh()
	switch p := g.IntN(100); {
	case p < 5:
		e.kind, e.n = rules, 1+g.IntN(8)
	case p < 9:
		e.kind = one(g.Rand, hint, canary)
	case p < 14:
		e.kind = one(g.Rand, kubeletGone, flushed)
	case p < 16:
		e.kind, e.with = hostile, one(g.Rand, "taken", "removed")
	case p < 25:
		e.kind = one(g.Rand, version, save, list)
	case p < 38 && len(g.added) > 0:
		return g.again()
	case p < 45:
		e.kind = one(g.Rand, flush, unchain)
	case p < 62:
		return g.adds()
	case p < 64:
		e.kind = policy
	case p < 70:
		e.kind = one(g.Rand, burst, burstAndRules)
	case p < 74:
		e.kind = refused
	case p < 77:
		e.kind, e.user = powerless, false
	case p < 79:
		e.kind = override
	case p < 87:
		e.user = false
		e.disturb(g.Rand)
	case p < 91:
		e.kind = strict
	case p < 95:
		e.kind = one(g.Rand, selects, selectMode)
	case p < 96:
		e.kind = reset
	default:
		e.kind, e.with = restart, one(g.Rand, "all", "root", "none")
	}
	return e
}

// disturb lets one or more system calls of a call that adds fail, or kills it there.
func (e *event) disturb(r *rand.Rand) {
	on := one(r, "socket", "openat", "sendto", "recvfrom", "getsockopt", "readlinkat", "symlinkat", "renameat", "flock", "execve", "newfstatat")
	first := 1 + r.IntN(4)
	when := fmt.Sprintf(":when=%d..%d", first, first+r.IntN(6)) // EINTR for ever would be a call for ever
	switch e.kind = one(r, momentary, momentary, permanent, killed); e.kind {
	case momentary:
		e.with = one(r, "socket", "openat", "getsockopt", "recvfrom", "sendto") + " error=" + one(r, "ENFILE", "EMFILE", "ENOMEM", "ENOBUFS", "EINTR", "EAGAIN") + when
	case permanent:
		e.with = on + " error=" + one(r, "EPERM", "EACCES", "ENOSYS", "EIO", "EROFS", "ENOSPC") + when
	case killed:
		e.with = on + " signal=KILL" + when
	}
}
