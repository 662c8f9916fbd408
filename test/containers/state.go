// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"math/rand/v2"
	"strings"
)

// refill is what an init container does that lays straight links to the wrapper in a volume.
const refill = `volume=rw; start; inside "cp /usr/sbin/iptables-wrapper /usr/local/sbin/; cd /usr/local/sbin
	for n in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
		ln -sf iptables-wrapper \$n; done"; volume=ro`

// state is a choice in each dimension.
type state []int

// random is plain in most dimensions, so that faults do not hide each other.
func random(r *rand.Rand) state {
	s := make(state, len(dimensions))
	for i, d := range dimensions {
		if d.name == "host" || d.name == "image" || r.IntN(3) == 0 {
			s[i] = r.IntN(len(d.choices))
		}
	}
	return s
}

func (s state) choice(name string) choice {
	for i, d := range dimensions {
		if d.name == name {
			return d.choices[s[i]]
		}
	}
	panic(name)
}

func (s state) String() string {
	var chosen []string
	for i, d := range dimensions {
		if s[i] > 0 || i < 2 {
			chosen = append(chosen, d.name+": "+d.choices[s[i]].doc)
		}
	}
	return strings.Join(chosen, "; ")
}

// lines make the container, up to what was called before.
func (s state) lines() (lines []string) {
	for i, d := range dimensions {
		if d.name == "image" || d.name == "before" {
			continue // after the settings
		}
		lines = append(lines, d.choices[s[i]].lines)
	}
	lines = append(lines, s.choice("image").lines, "start", s.choice("before").lines)
	return lines
}

// faulty says whether something is wrong, or may be.
func (s state) faulty() bool {
	for i, d := range dimensions {
		if d.choices[s[i]].fault {
			return true
		}
	}
	return false
}

// truth is the host's backend, "unknown" if nobody can know it.
func (s state) truth() string {
	truth := "unknown"
	for i, d := range dimensions {
		if t := d.choices[s[i]].truth; t != "" {
			truth = t
		}
	}
	if s.choice("network").truth != "" {
		return "unknown"
	}
	return truth
}
