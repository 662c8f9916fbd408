// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// How certain an answer was.
const (
	certain = "certain"
	guess   = "guess"
	blind   = "blind"   // a guess that could not ask both backends
	unbound = "unbound" // a guess by a process that cannot tell whose container this is: it binds nobody
)

// parse reads a memory's target. What follows the backend and cannot be read makes it a guess: the form of former versions, for
// example, is the backend alone. A memory of another life is none.
func parse(target, life string) (r detect.Memory, state string, ok bool) {
	words := strings.SplitN(target, " ", 5)
	if r.Mode = detect.Mode(words[0]); r.Mode != detect.NFT && r.Mode != detect.Legacy {
		return detect.Memory{}, "", false
	}
	if len(words) < 4 {
		return r, guess, true
	}
	if words[3] != life {
		return detect.Memory{}, "", false
	}
	if reason := detect.Reason(words[1]); slices.Contains(detect.Reasons(), reason) {
		r.Reason, r.Conclusive = reason, words[2] == certain
	}
	if len(words) == 5 {
		r.Because = words[4]
	}
	return r, words[2], true
}

func (m Memory) target(r detect.Memory, state string) string {
	if r.Conclusive {
		state = certain
	}
	return strings.Join([]string{string(r.Mode), cmp.Or(string(r.Reason), "unknown"), state, m.life, r.Because}, " ")
}
