// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package interleave

import (
	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// kernel is which names there are in the network namespace. Numbers of rules are not in it: without a name, each call
// has a guess of its own, whichever it is.
type kernel struct {
	hint    backends // where kubelet's hint is
	program backends // where a program of the host has a chain
}

// backends are none, one or both of them.
type backends uint8

const (
	nft    backends = 1
	legacy backends = 2
	both            = nft | legacy
)

func of(backend detect.Backend) backends {
	switch backend {
	case detect.NFT:
		return nft
	case detect.Legacy:
		return legacy
	}
	return 0
}

// decide asks the real table. Where no name decides, a number of rules makes the answer this guess.
func (k kernel) decide(held, guess detect.Backend) (backend detect.Backend, certain bool) {
	e := detect.Evidence{NFT: k.of(nft), Legacy: k.of(legacy), TakesRules: detect.Yes}
	switch guess {
	case detect.NFT:
		e.NFT.Rules = 1
	case detect.Legacy:
		e.Legacy.Rules = 1
	}
	r := detect.Decide(e, held)
	return r.Backend, r.Certain
}

// of is what there is to be found of one backend.
func (k kernel) of(b backends) detect.Findings {
	answer := func(in backends) [2]detect.Answer {
		if in&b != 0 {
			return [2]detect.Answer{detect.Yes, detect.Yes}
		}
		return [2]detect.Answer{detect.No, detect.No}
	}
	return detect.Findings{Kernel: detect.Yes, Hint: answer(k.hint), Canary: answer(0), Program: answer(k.program)}
}
