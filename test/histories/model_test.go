// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

// The model is the documentation's decision table and its protocol, in the plainest form: what the host has, what the
// container has stored, what a call runs, and what it stores.

// A backend is what one of them has, for IPv4 and IPv6.
type backend struct {
	hint, canary [2]bool
	docker       bool // a chain that only Docker makes
	firewalld    bool // a table that only firewalld makes
	rules        [2]int
}

func (b backend) has(chain [2]bool) bool { return chain[0] || chain[1] }
func (b backend) count() int             { return b.rules[0] + b.rules[1] }
func (b backend) program() bool          { return b.docker || b.firewalld }

// A host has two backends, by mode.
type host map[string]*backend

var other = map[string]string{"nft": "legacy", "legacy": "nft"}

// A decision is an answer, and how it binds.
type decision struct {
	mode    string // "" for none
	certain bool
	kubelet bool
}

// decide is the table. Remembered is what the memory says.
func (h host) decide(remembered decision) (d decision, isRemembered bool) {
	d = h.kubelet()
	switch {
	case d.certain:
		return d, false
	case remembered.mode != "":
		return remembered, true
	case d.mode != "":
		return d, false
	}
	return h.rest(), false
}

// kubelet is the two rows of kubelet's chains. IPv4's count, and IPv6's where IPv4 has none.
func (h host) kubelet() decision {
	nft, legacy := h["nft"], h["legacy"]
	for _, row := range [][2][2]bool{{nft.hint, legacy.hint}, {nft.canary, legacy.canary}} {
		var said [2]string
		for family := range said {
			switch {
			case row[0][family]:
				said[family] = "nft"
			case row[1][family]:
				said[family] = "legacy"
			}
		}
		switch {
		case said[0] == "" && said[1] == "":
			continue
		case said[0] == "":
			return decision{said[1], true, true}
		}
		return decision{said[0], said[1] == "" || said[1] == said[0], true}
	}
	return decision{}
}

// rest is the rows below what is remembered.
func (h host) rest() decision {
	nft, legacy := h["nft"], h["legacy"]
	switch {
	case nft.docker && !legacy.program():
		return decision{mode: "nft", certain: true}
	case legacy.docker && !nft.program():
		return decision{mode: "legacy", certain: true}
	case nft.firewalld && !legacy.program():
		return decision{mode: "nft", certain: legacy.count() == 0}
	}
	switch n, l := nft.count(), legacy.count(); {
	case n > 0 && l > 0 && l > n:
		return decision{mode: "legacy"}
	case n > 0 && l > 0:
		return decision{mode: "nft"}
	case l > 0:
		return decision{mode: "legacy", certain: !nft.program()}
	case n > 0:
		return decision{mode: "nft", certain: !legacy.program()}
	}
	return decision{mode: "nft"}
}

// stored is what a container has stored.
type stored struct {
	sw     string // where the switch points to: a mode, "" for the wrapper
	memory decision
}

// A place is what the container is like.
type place struct{ root, dev string }

func (p place) remembers() bool { return p.root == "rw" || p.dev == "own" }

// keep is the protocol, for a call of root that nothing disturbs. It returns what runs and what is stored.
func (p place) keep(h host, s stored, adds, changes, locked bool) (runs string, after stored) {
	if s.sw != "" {
		return s.sw, s // it is not the wrapper that is called
	}
	d, remembered := h.decide(s.memory)
	k := d.kubelet && d.certain && !remembered
	guess := !d.certain && !remembered
	switch {
	case !changes && !k, guess && !adds:
		return d.mode, s
	case p.remembers() && !remembered:
		s.memory = d
	}
	if d.certain && p.root == "rw" && !locked {
		s.sw = d.mode
	}
	return d.mode, s
}
