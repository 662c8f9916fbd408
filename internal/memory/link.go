// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// State is how certain a remembered answer was. One of a later version counts as a guess.
type State string

// The states.
const (
	certain State = "certain"
	Guess   State = "guess"
	Blind   State = "blind"   // a guess that could not ask both backends
	Unbound State = "unbound" // a guess by a process that cannot tell whose container this is: it binds nobody
)

// name returns the name of a user's memory of one life.
func name(uid int, about Life) string {
	return self.WrapperName + "." + strconv.Itoa(uid) + "." + about.String()
}

// parseName is the reverse.
func parseName(text string) (uid int, about Life, ok bool) {
	rest, ours := strings.CutPrefix(text, self.WrapperName+".")
	if !ours {
		return 0, Life{}, false
	}
	user, life, _ := strings.Cut(rest, ".")
	about, ok = parseLife(life)
	uid, err := strconv.Atoi(user)
	return uid, about, ok && err == nil && digits(user)
}

// content is what a memory's link says.
type content struct {
	detect.Memory
	state State
	maker process // who made the guess; zero if it does not say
}

// parse reads a memory's target. What follows the backend and cannot be read makes it a guess: the form of former
// versions, for example, is the backend alone. A memory of another life is none.
//
//	nft rule-count certain 4026531840.4711.0badcafe nft has 15 rules and legacy has no rules
//	nft default guess:4712.98765 4026531840.4711.0badcafe no evidence was found, and nft is the default
func parse(target string, about Life) (c content, ok bool) {
	words := strings.SplitN(target, " ", 5)
	c.Mode = detect.Mode(words[0])
	c.state = Guess
	if !programs.IsMode(c.Mode) {
		return content{}, false
	}
	if len(words) < 4 {
		return c, true
	}
	if words[3] != about.String() {
		return content{}, false
	}
	state, maker, _ := strings.Cut(words[2], ":")
	c.state = State(state)
	c.maker = parseProcess(maker)
	reason := detect.Reason(words[1])
	if slices.Contains(detect.Reasons(), reason) {
		c.Reason = reason
		c.Conclusive = c.state == certain
	}
	if because := strings.Join(words[4:], ""); printable(because) {
		c.Because = because
	}
	return c, true
}

// printable reports whether a text can be shown in a line.
func printable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// target returns what the link of an answer contains. The state counts if the answer is a guess. What somebody selected
// holds whoever made it.
func (m Memory) target(r detect.Memory, state State) string {
	how := string(state)
	switch {
	case r.Conclusive:
		how = string(certain)
	case r.Reason != detect.Override && state != Unbound:
		how += ":" + thisProcess().String()
	}
	reason := cmp.Or(string(r.Reason), "unknown")
	return strings.Join([]string{string(r.Mode), reason, how, m.life.String(), r.Because}, " ")
}

// found is a link that says which backend was chosen.
type found struct {
	path string
	id   tree.ID
	uid  int
	sole bool // it has no other name, by which it may have been made elsewhere
	content
}

// read reads a link that must belong to a user and be about one life.
func (m Memory) read(path string, uid int, about Life) (f found, ok bool) {
	st, target, err := m.tree.StatLink(path)
	if err != nil || int(st.Uid) != uid {
		return found{}, false
	}
	said, ok := parse(target, about)
	if !ok {
		return found{}, false
	}
	said.Since = time.Unix(st.Mtim.Unix())
	return found{path: path, id: tree.IDOf(st), uid: uid, sole: st.Nlink == 1, content: said}, true
}
