// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"os"
	"slices"
	"strconv"
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
//
// Behind "guess" and "blind" is the ID of the process that made it: "guess:4711". 0 if there is none.
func parse(target, life string) (r detect.Memory, state string, maker int, ok bool) {
	words := strings.SplitN(target, " ", 5)
	if r.Mode = detect.Mode(words[0]); r.Mode != detect.NFT && r.Mode != detect.Legacy {
		return detect.Memory{}, "", 0, false
	}
	if len(words) < 4 {
		return r, guess, 0, true
	}
	if words[3] != life {
		return detect.Memory{}, "", 0, false
	}
	state, pid, _ := strings.Cut(words[2], ":")
	maker, _ = strconv.Atoi(pid)
	if reason := detect.Reason(words[1]); slices.Contains(detect.Reasons(), reason) {
		r.Reason, r.Conclusive = reason, state == certain
	}
	if len(words) == 5 {
		r.Because = words[4]
	}
	return r, state, max(maker, 0), true
}

func (m Memory) target(r detect.Memory, state string) string {
	if r.Conclusive {
		state = certain
	} else if r.Reason != detect.Override && state != unbound {
		state += ":" + strconv.Itoa(os.Getpid())
	}
	return strings.Join([]string{string(r.Mode), cmp.Or(string(r.Reason), "unknown"), state, m.life, r.Because}, " ")
}
