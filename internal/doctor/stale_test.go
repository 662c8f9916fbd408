// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
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

// A clock that was set forward makes process 1 seem younger than what it did before. The container's /dev does not.
func TestStarted(t *testing.T) {
	root := t.TempDir()
	in, err := tree.Open(root)
	host.Check(t, err)
	const farAhead = "100000000000" // in ticks since the boot
	n := layout.Names{Tree: in, Container: memory.Container{Life: memory.Life{Start: farAhead}}}
	start, known := started(n)
	if !known || !start.After(time.Now()) {
		t.Errorf("without /dev: got %v, %v", start, known)
	}
	host.Check(t, os.Mkdir(filepath.Join(root, "dev"), 0o755))
	ptmx := filepath.Join(root, "dev/ptmx")
	host.Check(t, os.WriteFile(ptmx, nil, 0o666))
	start, _ = started(n)
	if !start.After(time.Now()) {
		t.Errorf("the host's /dev: got %v", start)
	}
	host.Check(t, os.Remove(ptmx))
	host.Check(t, os.Symlink("pts/ptmx", ptmx))
	start, known = started(n)
	if !known || start.After(time.Now()) {
		t.Errorf("the container's /dev: got %v, %v", start, known)
	}
	n.Container.Life.Start = ""
	host.Check(t, os.Remove(ptmx))
	start, known = started(n)
	if known {
		t.Errorf("nothing is known: got %v", start)
	}
}
