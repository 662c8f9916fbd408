// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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

	// Pending says that whoever made the guess is still at work, so that it may be about to write.
	Pending bool `json:"-"`
}

// holds reports whether the container remembers a backend. A guess leaves a table behind if it has written anything; what
// somebody chose holds without.
func (m Memory) holds(mode Mode, b backend) bool {
	return m.Mode == mode && (m.Conclusive || m.Pending || m.Reason == Override || b.exists != No)
}

// momentary reports whether the same question may be answered at the next moment.
func momentary(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains([]syscall.Errno{
		syscall.ENFILE, syscall.EMFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EINTR, syscall.EAGAIN}, errno)
}

// Memorable says why a guess is not worth remembering, nil if it is. What a call could not see for a reason of the moment, the
// next one can; without CAP_NET_ADMIN nothing can be written; and where one backend has not even twice as many rules as the
// other, the next count may differ. It is nil for a conclusive answer.
func (r Result) Memorable() error {
	if r.Conclusive {
		return nil
	}
	for _, e := range r.Evidence {
		if momentary(e.Err) {
			return e.Err
		}
		for _, f := range e.Features {
			if momentary(f.Err) {
				return f.Err
			}
		}
	}
	if r.unprivileged {
		return fmt.Errorf("CAP_NET_ADMIN is missing: %w", syscall.EPERM)
	}
	if nft, legacy := r.likely(NFT), r.likely(Legacy); r.Reason == RuleCount && max(nft, legacy)/2 < min(nft, legacy) {
		return errors.New("too close to tell: " + r.Because())
	}
	return nil
}

// Blind reports that something of one backend could not be asked.
func (r Result) Blind() bool {
	return slices.ContainsFunc(r.Evidence, func(e Evidence) bool { return e.Hint == Unknown })
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
