// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
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
		{"the image's", func(r *Report) { r.inImage = true }, false},
		{"a volume's", func(r *Report) { r.inVolume = true }, false},
		{"another process 1, so it may be the image's", func(r *Report) { r.otherProcess1 = true }, false},
		{"the image's switch, but a memory", func(r *Report) {
			r.inImage = true
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

// With hostPID, a user who cannot change the commands did not make them what they are.
func TestOrigin(t *testing.T) {
	root := t.TempDir()
	in, err := tree.Open(root)
	host.Check(t, err)
	host.Check(t, os.Symlink("xtables-nft-multi", filepath.Join(root, layout.Switch)))
	for _, test := range []struct {
		doc        string
		strangers  bool
		unwritable error
		image      bool
	}{
		{"this container's own", false, nil, false},
		{"a read-only root", false, unix.EROFS, true},
		{"of another user", false, unix.EACCES, false},
		{"hostPID", true, nil, false},
		{"of another user, with hostPID", true, unix.EACCES, true},
	} {
		r := Report{otherProcess1: test.strangers, unwritable: test.unwritable}
		image, volume := r.origin(layout.Names{Tree: in}, "/")
		if image != test.image || volume {
			t.Errorf("%s: got %v, %v", test.doc, image, volume)
		}
	}
}

// What root has remembered, root alone can forget.
func TestWhyNoMemory(t *testing.T) {
	life := memory.Life{Netns: "7", Start: "4711", Boot: "0badcafe"}
	for _, user := range []int{0, 1000} {
		root := t.TempDir()
		in, err := tree.Open(root)
		host.Check(t, err)
		host.Check(t, os.MkdirAll(filepath.Join(root, "dev/shm"), 0o755))
		host.Check(t, os.Chmod(filepath.Join(root, "dev/shm"), 0o777|os.ModeSticky))
		link := filepath.Join(root, "dev/shm", self.WrapperName+".0."+life.String())
		host.Check(t, os.Symlink("nft rule-count certain "+life.String(), link))
		n := layout.Names{
			Tree:      in,
			Self:      self.Process{UID: user},
			Container: memory.Container{OwnNetns: detect.Yes, OwnRoot: detect.Yes, Life: life},
		}
		r := Report{Here: here.Here{How: here.Remembered}}
		err = r.whyNoMemory(n)
		if errors.Is(err, memory.ErrRoots) != (user == 1000) {
			t.Errorf("user %d: got %v", user, err)
		}
	}
}
