// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import "github.com/iptables-wrappers/iptables-wrappers/test/oracle"

// A world is what a host has, as the oracle wants it, with the numbers of rules apart, because a client may flush those
// of one family.
type world struct {
	oracle.Host
	rules map[string]*[2]int // by backend and family
}

func newWorld() *world {
	w := &world{rules: map[string]*[2]int{oracle.NFT: {}, oracle.Legacy: {}}}
	w.NFT.InKernel = oracle.Yes
	w.Legacy.InKernel = oracle.Yes
	w.TakesRules = oracle.Yes
	return w
}

// has makes a marker of a kind appear in a backend, or go.
func (w *world) has(backend string, kind, family int, answer oracle.Answer) {
	w.Of(backend).Markers[kind][family] = answer
}

// seen is the host as root sees it, or another user, who cannot list legacy's tables.
func (w *world) seen(byUser bool) *oracle.Host {
	h := w.Host
	h.NFT.Rules = w.rules[oracle.NFT][0] + w.rules[oracle.NFT][1]
	h.Legacy.Rules = w.rules[oracle.Legacy][0] + w.rules[oracle.Legacy][1]
	if byUser {
		h.Legacy = oracle.Backend{InKernel: oracle.Unknown}
		for kind := range h.Legacy.Markers {
			h.Legacy.Markers[kind] = [2]oracle.Answer{oracle.Unknown, oracle.Unknown}
		}
	}
	return &h
}
