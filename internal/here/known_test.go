// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What the switch says counts for more than a memory, and a memory of a missing program for nothing.
func TestObeyed(t *testing.T) {
	s := newScene(t)
	remembered := detect.Memory{Mode: detect.Legacy}
	if got := obeyed(s.n, sbin, remembered); got != remembered {
		t.Errorf("got %+v", got)
	}
	s.link(oldProgram, sbin+"/"+layout.Switch)
	if got := obeyed(s.n, sbin, remembered); got != remembered {
		t.Errorf("the switch says the same: got %+v", got)
	}
	s.link(nftProgram, sbin+"/"+layout.Switch)
	if got := obeyed(s.n, sbin, remembered); got.Mode != "" {
		t.Errorf("the switch says otherwise: got %+v", got)
	}
	s.link(nftProgram, sbin+"/iptables")
	if got := obeyed(s.n, sbin, remembered); got != remembered {
		t.Errorf("the command does not go through the switch: got %+v", got)
	}
	s.link(layout.Switch, sbin+"/iptables")
	s.link(self.WrapperName, sbin+"/"+layout.Switch)
	s.write(oldProgram, "legacy", 0o644)
	if got := obeyed(s.n, sbin, remembered); got != remembered {
		t.Errorf("a program that cannot be executed is not missing: got %+v", got)
	}
	host.Check(t, os.Remove(s.real(oldProgram)))
	if got := obeyed(s.n, sbin, remembered); got.Mode != "" {
		t.Errorf("no program: got %+v", got)
	}
	s.remember("legacy rule-count certain")
	h, _ := s.look(detect.Query{})
	if h.How != EachCall || h.Backend != detect.NFT {
		t.Errorf("no program: got %+v", h)
	}
	h, _ = s.look(detect.Query{Override: detect.Legacy})
	if !strings.Contains(h.Error, programs.ErrMissing.Error()) || h.Program != "" {
		t.Errorf("the variable, and no program: got %+v", h)
	}
}

// Where the switch has moved, the variable decides nothing, and it says nothing of the host either.
func TestIdleVariable(t *testing.T) {
	s := newScene(t)
	host.Run(t, "iptables-legacy", "-A", "FORWARD", "-j", "ACCEPT")
	s.link(nftProgram, sbin+"/"+layout.Switch)
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy} {
		h, uses := s.look(detect.Query{Override: mode})
		if !h.Differs || h.How != Switch || h.Backend != detect.NFT || uses.Mode != detect.Legacy || !uses.Conclusive {
			t.Errorf("%s: got %+v, the host: %v", mode, h, uses)
		}
	}
}

// A call knows what is installed, and what the container remembers: here, or, in the namespace of another container,
// where process 1 is. With the variable, it remembers nothing.
func TestKnown(t *testing.T) {
	s := newScene(t)
	s.remember("legacy rule-count certain")
	if got := known(s.n, sbin, detect.Query{}); got.Remembered.Mode != detect.Legacy || got.Installed != "" {
		t.Errorf("got %+v", got)
	}
	if got := known(s.n, sbin, detect.Query{Override: detect.NFT}); got.Remembered.Mode != "" {
		t.Errorf("the variable: got %+v", got)
	}
	another := memory.Life{Netns: "8", Start: life.Start, Boot: life.Boot}
	s.n.Container = memory.Container{OwnNetns: detect.No, OwnRoot: detect.Yes, Life: another, Home: life}
	if got := known(s.n, sbin, detect.Query{}); got.Home.Mode != detect.Legacy || got.Remembered.Mode != "" {
		t.Errorf("another namespace: got %+v", got)
	}
	host.Check(t, os.Remove(s.real(oldProgram)))
	if got := known(s.n, sbin, detect.Query{}); got.Home.Mode != "" || got.Installed != detect.NFT {
		t.Errorf("another namespace, and no program: got %+v", got)
	}
}

// Where one backend alone is installed, the host is taken to use that one, also through the variable.
func TestOnlyInstalled(t *testing.T) {
	s := newScene(t)
	host.Check(t, os.Remove(s.real(nftProgram)))
	for _, override := range []detect.Mode{"", detect.NFT} {
		_, uses := s.look(detect.Query{Override: override})
		if uses.Mode != detect.Legacy || uses.Reason != detect.OnlyInstalled {
			t.Errorf("the variable %q: got %v", override, uses)
		}
	}
}

// What is no program of iptables runs no backend, so it does not run the wrong one.
func TestSomethingElse(t *testing.T) {
	s := newScene(t)
	host.Run(t, "iptables-legacy", "-A", "FORWARD", "-j", "ACCEPT")
	s.write("/opt/bin/script", "#!/bin/sh\n", 0o755)
	s.link("/opt/bin/script", sbin+"/iptables")
	h, uses := s.look(detect.Query{})
	if h.Differs || h.How != NotWrapped || !uses.Conclusive {
		t.Errorf("got %+v, the host: %v", h, uses)
	}
}
