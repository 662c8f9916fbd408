// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// A restart is asked for only where a new container is known to be right.
func TestStale(t *testing.T) {
	for _, test := range []struct {
		doc   string
		set   func(*Report)
		stale bool
	}{
		{"this container's own", func(*Report) {}, true},
		{"the image's", func(r *Report) { r.image = true }, false},
		{"a volume's", func(r *Report) { r.volume = true }, false},
		{"another process 1, so it may be the image's", func(r *Report) { r.strangers = true }, false},
		{"the image's switch, but a memory", func(r *Report) {
			r.image = true
			r.Findings[0].Code = "wrong-backend-remembered"
		}, true},
		{"two backends", func(r *Report) {
			r.Findings[0].Code = "two-backends"
			r.Names = []layout.Status{{Switched: true, Mode: detect.NFT}, {Mode: detect.Legacy}}
		}, true},
		{"two backends, and no wrapper, so it is the image's", func(r *Report) {
			r.Findings[0].Code = "two-backends"
			r.Names = []layout.Status{{Mode: detect.NFT}, {Mode: detect.Legacy}}
		}, false},
		{"something else is wrong", func(r *Report) { r.Findings[0].Code = "no-net-admin" }, false},
	} {
		r := Report{
			Findings: []Finding{{Code: "wrong-backend-stored"}},
			Names:    []layout.Status{{Name: "iptables", Switched: true}},
		}
		test.set(&r)
		if (r.stale() != nil) != test.stale {
			t.Errorf("%s: got %v", test.doc, r.stale())
		}
	}
}
