// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"
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
		{"something else is wrong", func(r *Report) { r.Findings[0].Code = "no-net-admin" }, false},
	} {
		r := Report{Findings: []Finding{{Code: "wrong-backend-stored"}}}
		test.set(&r)
		if (r.stale() != nil) != test.stale {
			t.Errorf("%s: got %v", test.doc, r.stale())
		}
	}
}
