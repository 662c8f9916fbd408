// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

// The model knows what design and documentation promise, and no more: for each call a set of worlds, what the container may
// remember by now, and what each of them lets the call run. What is seen rules worlds out. If none is left, a promise is
// broken.

// A memory is what a user's calls may have left behind.
type memory struct {
	mode    string // "" for none
	certain bool
	person  bool // select --mode: binding without rules, perhaps not called certain
	blind   bool // made by a call that could not ask both backends: believed by its own user only
}

type world struct{ root, user memory }

type answer struct {
	mode    string
	certain truth
	from    origin
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
	counted origin = iota
	remembered
	kubelet
	stored
)

// What a call does to the tables, as far as the wrapper can tell from its arguments.
type deed int

const (
	looking deed = iota
	changing
	adding
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
func (m *model) remembers(user bool) truth {
	sticky := no
	if m.Shm == "sticky" {
		sticky = yes
		if m.taken { // known limit: who fills the place costs users other than root their steadiness
			sticky = maybe
		}
	}
	switch {
	case user && m.Init == 0:
		return no // process 1 is another user's, so that the network namespace is not known to be the container's
	case user:
		return sticky // /run is root's
	case m.Dev == "own" || m.Run == "rw":
		return yes
	default:
		return sticky
	}
}

// answers is what a call may decide. A command of the wrapper does not go through the switch.
func (m *model) answers(w world, k kernel, user, command bool) []answer {
	if m.sw != "" && !command {
		return []answer{{m.sw, yes, stored}} // known limit: what is stored on a writable root is final
	}
	// Without group 0, legacy's tables cannot be listed.
	sees := !user || m.Group == 0
	for _, has := range []func(*side) bool{func(s *side) bool { return s.hint }, func(s *side) bool { return s.canary }} {
		if has(&k.nft) && sees || k.nft.hint {
			return []answer{{"nft", yes, kubelet}}
		}
		if has(&k.legacy) && sees {
			return []answer{{"legacy", yes, kubelet}}
		}
	}
	var list []answer
	if !sees && k.nft.canary { // legacy may have a hint
		list = append(list, answer{"nft", maybe, kubelet})
	}
	believed := []memory{w.root}
	if user {
		believed = append(believed, w.user)
	}
	for i, mem := range believed {
		firm := mem.certain || mem.person
		void := mem.mode == "" || mem.blind && user && i == 0 || !firm && !k.of(mem.mode).table
		if void || len(list) > 0 && !firm { // which of two certain ones is not promised
			continue
		}
		a := answer{mem.mode, no, remembered}
		if mem.certain {
			a.certain = yes
		}
		list = append(list, a)
	}
	if len(list) > 0 {
		return list
	}
	list = m.counts(w, k, sees)
	if command && m.sw != "" { // moved in an earlier life, or without a memory
		list = append(list, answer{m.sw, maybe, remembered})
	}
	return list
}

// counts is what rules alone say.
func (m *model) counts(w world, k kernel, sees bool) []answer {
	either := []answer{{"nft", no, counted}, {"legacy", no, counted}}
	nft, legacy := k.nft.rules, k.legacy.rules
	a := answer{"nft", yes, counted}
	if legacy > nft {
		a.mode = "legacy"
	}
	switch {
	case !sees:
		return either
	case m.busy && max(nft, legacy) < 2*min(nft, legacy):
		return either
	case nft+legacy == 0:
		a.certain = no
	case w.user.mode == a.mode && !w.user.certain && k.of(a.mode).table:
		a.certain = no // its rules may be those of a guess
	case m.busy || m.guessed || nft == legacy || w.root.mode != "" || w.user.mode != "":
		a.certain = maybe
	}
	return []answer{a}
}

// after is what may be remembered after a call with this answer.
func (m *model) after(w world, a answer, does deed, user bool) []world {
	can := m.remembers(user)
	if a.from == stored || a.from == remembered || can == no || a.from == counted && does == looking {
		return []world{w}
	}
	var list []world
	made := func(mem memory) {
		next := w
		if user {
			next.user = mem
		} else {
			next.root = mem
		}
		list = append(list, next)
	}
	if a.certain != no {
		made(memory{mode: a.mode, certain: true})
	}
	if a.certain != yes && does == adding {
		made(memory{mode: a.mode})
		if user && m.Group != 0 {
			list = nil
			made(memory{mode: a.mode, blind: true})
		}
	}
	if can == maybe || m.busy || a.certain == maybe || len(list) == 0 {
		list = append(list, w)
	}
	return list
}

// stores says whether an answer may move the switch.
func (m *model) stores(a answer, does deed, user bool) bool {
	return m.Root == "rw" && !user && a.certain != no && (a.from != counted || does != looking)
}
