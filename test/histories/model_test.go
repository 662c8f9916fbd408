// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

// The model knows what design and documentation promise, and no more: for each call a set of worlds, what the container
// may remember by now, and what each of them lets the call run. What is seen rules worlds out. If none is left, a
// promise is broken.

// A memory is what a user's calls may have left behind.
type memory struct {
	mode    string // "" for none
	certain truth
	person  bool // select --mode: binding without rules, perhaps not called certain
	blind   bool // made by a call that could not ask both backends: believed by its own user only
}

// A world has root's memory, and that of the other user.
type world [2]memory

type answer struct {
	mode    string
	certain truth
	from    origin
	doubted bool // it may be a certain count but for somebody's guess
}

// A truth is "maybe" where the documentation promises neither.
type truth int

const (
	no truth = iota
	maybe
	yes
)

type origin int

const (
	counted    origin = iota
	remembered        // or stored
	kubelet
)

type model struct {
	settings
	sw      string // where the switch points to
	worlds  []world
	guessed bool // rules are here that a guess may have written, in this life or an earlier one
	taken   bool // somebody has taken the names in /dev/shm
	busy    bool // now
}

// remembers says whether a user's calls can make a memory.
func (m *model) remembers(who int) truth {
	switch {
	case who == 1 && m.Init == 0:
		return no // process 1 is another user's, so that the network namespace is not known to be the container's
	case who == 0 && (m.Dev == "own" || m.Run == "rw" || m.Shm == "sticky"):
		return yes // what others have put there under its name gives way
	case m.Shm != "sticky":
		return no
	case m.taken:
		return maybe // known limit: who fills the place costs users other than root their steadiness
	}
	return yes
}

// answers is what a call may decide. A command of the wrapper does not go through the switch.
func (m *model) answers(w world, k kernel, e event) []answer {
	sees := e.who == 0 || m.Group == 0 // otherwise legacy's tables cannot be listed
	var list []answer
	switch {
	case m.sw != "" && e.class < strict:
		// known limit: what is stored on a writable root is final
		return []answer{{mode: m.sw, certain: yes, from: remembered}}
	case e.class == overrides:
		return []answer{{mode: e.mode, certain: no, from: remembered}}
	case k.nft.hint, sees && k.nft.canary && !k.legacy.hint:
		return []answer{{mode: "nft", certain: yes, from: kubelet}}
	case sees && (k.legacy.hint || k.legacy.canary):
		return []answer{{mode: "legacy", certain: yes, from: kubelet}}
	case k.nft.canary: // legacy may have a hint
		list = append(list, answer{mode: "nft", certain: no, from: kubelet})
	}
	for i, mem := range w[:1+e.who] {
		firm := mem.certain == yes || mem.person
		void := mem.mode == "" || mem.blind && i < e.who || !firm && !k.of(mem.mode).table
		if void || len(list) > 0 && !firm { // which of two certain ones is not promised
			continue
		}
		list = append(list, answer{mode: mem.mode, certain: mem.certain, from: remembered})
	}
	if len(list) > 0 {
		return list
	}
	list = m.counts(w, k, sees)
	if m.sw != "" { // moved in an earlier life, or without a memory
		list = append(list, answer{mode: m.sw, certain: maybe, from: remembered})
	}
	return list
}

// counts is what rules alone say.
func (m *model) counts(w world, k kernel, sees bool) []answer {
	nft, legacy := k.nft.rules, k.legacy.rules
	a := answer{mode: "nft", certain: yes, from: counted}
	if legacy > nft {
		a.mode = "legacy"
	}
	switch {
	case !sees, m.busy && max(nft, legacy) < 2*min(nft, legacy):
		return []answer{{mode: "nft", certain: no, from: counted}, {mode: "legacy", certain: no, from: counted}}
	case nft+legacy == 0:
		a.certain = no
	// these may be the rules of a guess
	case w[1].mode == a.mode && w[1].certain == no && k.of(a.mode).table:
		a.certain = no
		a.doubted = true
	case m.busy || m.guessed || nft == legacy || w != world{}:
		a.certain = maybe
		a.doubted = true
	}
	return []answer{a}
}

// contradicted says whether what is remembered for certain is not what the host's rules say now.
func (a answer) contradicted(k kernel) bool {
	nft, legacy := k.nft.rules, k.legacy.rules
	against := legacy > nft
	if a.mode == "legacy" {
		against = nft >= legacy && nft > 0
	}
	return a.from == remembered && a.certain == yes && against
}

// after is what may be remembered after a call with this answer.
func (m *model) after(w world, a answer, e event) []world {
	can := m.remembers(e.who)
	if a.from == remembered || can == no || a.from == counted && e.class < removes {
		return []world{w}
	}
	var list []world
	made := func(mem memory) {
		next := w
		next[e.who] = mem
		list = append(list, next)
	}
	if a.certain != no {
		made(memory{mode: a.mode, certain: yes})
	}
	if a.certain != yes && (e.class >= adjusts || a.doubted && e.class >= removes) {
		made(memory{mode: a.mode, blind: e.who == 1 && m.Group != 0})
	}
	if can == maybe || m.busy || a.certain == maybe || len(list) == 0 {
		list = append(list, w)
	}
	return list
}

// stores says whether an answer may move the switch.
func (m *model) stores(a answer, e event) bool {
	return m.Root == "rw" && e.who == 0 && a.certain != no && (a.from != counted || e.class >= removes)
}
