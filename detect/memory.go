// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Memory is what a container remembers of its backend: an earlier answer, and what it rested on.
type Memory struct {
	Mode       Mode      `json:"mode"`              // "": nothing is remembered
	Reason     Reason    `json:"reason,omitempty"`  // "": not known
	Conclusive bool      `json:"conclusive"`        // otherwise it is a guess
	Because    string    `json:"because,omitempty"` // Result.Because
	Since      time.Time `json:"since,omitzero"`
}

// holds reports whether the container remembers a backend. A guess holds only while its backend has a table, which it
// leaves behind if it has written anything; what somebody chose needs none.
func (m Memory) holds(mode Mode, b backend) bool {
	return m.Mode == mode && (m.Conclusive || m.Reason == Override || b.exists != No)
}

// binds reports whether what the container remembers of its own network namespace decides in another one: only what
// would be in the switch if that could be replaced, because the switch decides in each namespace.
func (m Memory) binds(mode Mode) bool {
	return m.Mode == mode && (m.Conclusive || m.Reason == Override)
}

// passing returns an error if the same question, asked again, may not meet it. Of an error that was read back, only the
// words are known, so it may be such an error.
func passing(err error, words string) error {
	switch {
	case momentary(err):
		return err
	case err == nil && words != "":
		return errors.New(words)
	default:
		return nil
	}
}

// Memorable says why a guess is not worth remembering, nil if it is. What a call could not see for a reason of the
// moment, the next one can; without CAP_NET_ADMIN nothing can be written; and where one backend has not even twice as
// many rules as the other, the next count may differ. It is nil for a conclusive answer, and for one that only Doubt
// has made a guess.
func (r Result) Memorable() error {
	if r.Conclusive || r.doubted {
		return nil
	}
	for _, e := range r.Evidence {
		if err := passing(e.Err, e.Error); err != nil {
			return err
		}
		for _, f := range e.Features {
			if err := passing(f.Err, f.Error); err != nil {
				return err
			}
		}
	}
	if r.unprivileged {
		return fmt.Errorf("CAP_NET_ADMIN is missing: %w", syscall.EPERM)
	}
	nft := r.likely(NFT)
	legacy := r.likely(Legacy)
	if r.Reason == RuleCount && max(nft, legacy)/2 < min(nft, legacy) {
		return errors.New("too close to tell: " + r.Because())
	}
	return nil
}

// because says since when, and what decided then.
func (m *Memory) because() string {
	if m == nil {
		return "this container remembers it"
	}
	text := "remembered"
	if !m.Conclusive {
		text += " as a guess"
	}
	if !m.Since.IsZero() {
		text += " since " + m.Since.UTC().Format("2006-01-02 15:04 MST")
	}
	if because := cmp.Or(m.Because, string(m.Reason)); because != "" {
		text += "; what decided then: " + because
	}
	return text
}

// Doubt returns the result as a guess, for a reason that the kernel does not show: somebody in this network namespace
// may have made the rules by a guess, for example, which are no evidence then. Uncertainty returns the reason.
func (r Result) Doubt(reason string) Result {
	r.doubted = r.doubted || r.Conclusive
	r.Caveat = reason
	r.Conclusive = false
	return r
}
