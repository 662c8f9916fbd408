// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// scene is a container with both backends and a wrapper behind all six commands, in another root, on a host without
// anything.
type scene struct {
	*testing.T
	root string
	n    layout.Names
}

const (
	sbin       = "/usr/sbin"
	nftProgram = sbin + "/xtables-nft-multi"
	oldProgram = sbin + "/xtables-legacy-multi"
)

var life = memory.Life{Netns: "7", Start: "4711", Boot: "0badcafe"}

func newScene(t *testing.T) *scene {
	t.Helper()
	host.Netns(t)
	s := &scene{T: t, root: t.TempDir()}
	for _, dir := range []string{sbin, "/dev/shm", "/run", "/opt/bin"} {
		host.Check(t, os.MkdirAll(s.real(dir), 0o755))
	}
	s.write(nftProgram, "nft", 0o755)
	s.write(oldProgram, "legacy", 0o755)
	s.write(sbin+"/"+self.WrapperName, "\x7fELF"+programs.Marker(), 0o755)
	s.link(self.WrapperName, sbin+"/"+layout.Switch)
	for _, name := range programs.Names() {
		s.link(layout.Switch, sbin+"/"+name)
	}
	in, err := tree.Open(s.root)
	host.Check(t, err)
	s.n = layout.Names{
		Tree: in,
		Self: self.Process{
			Called:     sbin + "/iptables",
			Executable: sbin + "/" + self.WrapperName,
			UID:        os.Geteuid(),
		},
		Container: memory.Container{OwnNetns: detect.Yes, OwnRoot: detect.Yes, Life: life},
	}
	return s
}

func (s *scene) real(path string) string { return filepath.Join(s.root, path) }

func (s *scene) write(path, content string, mode os.FileMode) {
	s.Helper()
	host.Check(s, os.WriteFile(s.real(path), []byte(content), mode))
	host.Check(s, os.Chmod(s.real(path), mode))
}

// link makes a symlink, in place of whatever is there.
func (s *scene) link(target, path string) {
	s.Helper()
	_ = os.Remove(s.real(path))
	host.Check(s, os.Symlink(target, s.real(path)))
}

// remember makes the container remember "nft rule-count certain", for example.
func (s *scene) remember(what string) {
	s.link(what+" "+life.String()+" it was so", fmt.Sprintf("/dev/shm/%s.%d.%s", self.WrapperName, s.n.Self.UID, life))
}

// guessed leaves the sign of another life's guess.
func (s *scene) guessed(mode detect.Mode) {
	another := memory.Life{Netns: life.Netns, Start: "99", Boot: life.Boot}
	s.link(string(mode), fmt.Sprintf("/dev/shm/%s.%d.%s", self.WrapperName, s.n.Self.UID, another))
}

func (s *scene) look(q detect.Query) (Here, detect.Result) {
	return Look(s.n, sbin, q, Ask(s.n, sbin, q))
}

// What is remembered is held against what the host has, unless kubelet said it.
func TestRecounted(t *testing.T) {
	remembers := func(reason detect.Reason, conclusive bool) detect.Result {
		return detect.Result{
			Mode: detect.NFT, Reason: detect.Remembered, Conclusive: conclusive,
			Remembered: &detect.Memory{Mode: detect.NFT, Reason: reason, Conclusive: conclusive},
			Conflicts:  []detect.Conflict{detect.RulesInBoth},
		}
	}
	against := detect.Result{Mode: detect.Legacy, Reason: detect.RuleCount, Conclusive: true}
	for _, test := range []struct {
		doc     string
		asked   detect.Result
		now     detect.Result
		counted bool // whether the host is counted again
		want    detect.Mode
	}{
		{"a guess", remembers(detect.Default, false), against, true, detect.Legacy},
		{"a certain count", remembers(detect.RuleCount, true), against, true, detect.Legacy},
		{"what somebody selected", remembers(detect.Override, false), against, true, detect.Legacy},
		{"what kubelet said", remembers(detect.KubeletHint, true), against, false, detect.NFT},
		{"what kubelet's chains left unclear", remembers(detect.KubeletCanary, false), against, true, detect.Legacy},
		{
			"a count that is not certain", remembers(detect.RuleCount, true),
			detect.Result{Mode: detect.Legacy}, true, detect.NFT,
		},
		{"the same", remembers(detect.RuleCount, false), detect.Result{Mode: detect.NFT, Conclusive: true}, true,
			detect.NFT},
		{"nothing is remembered", detect.Result{Mode: detect.NFT, Reason: detect.Default}, against, false, detect.NFT},
	} {
		counted := false
		got := recounted(detect.Query{Everything: true}, test.asked, func(q detect.Query) detect.Result {
			counted = true
			if q.Override != "" || q.Remembered.Mode != "" || q.Everything {
				t.Errorf("%s: asked %+v", test.doc, q)
			}
			return test.now
		})
		reason := test.asked.Reason
		if got.Mode != test.asked.Mode {
			reason = test.now.Reason
		}
		if got.Mode != test.want || got.Reason != reason || counted != test.counted ||
			len(got.Conflicts) != len(test.asked.Conflicts) {
			t.Errorf("%s: got %+v, counted: %v", test.doc, got, counted)
		}
	}
}

// A host that has changed is seen, whatever kind of memory says otherwise, and also through the variable.
func TestHostHasChanged(t *testing.T) {
	for what, differs := range map[string]bool{
		"":                            false, // each call follows the host
		"nft default guess":           true,
		"nft rule-count certain":      true,
		"nft override guess":          true,
		"nft kubelet-hint certain":    false, // only kubelet's chains say more
		"legacy rule-count certain":   false,
		"legacy kubelet-hint certain": false,
	} {
		s := newScene(t)
		host.Run(t, "iptables-nft", "-N", "LEFT") // so that a guess has written something
		host.Run(t, "iptables-legacy", "-A", "FORWARD", "-j", "ACCEPT")
		how := EachCall
		if what != "" {
			s.remember(what)
			how = Remembered
		}
		h, uses := s.look(detect.Query{})
		if h.Differs != differs || h.How != how || h.Error != "" || (uses.Mode != h.Backend) != differs {
			t.Errorf("%q: got %+v, the host: %v", what, h, uses)
		}
		h, uses = s.look(detect.Query{Override: detect.NFT})
		if !h.Differs || h.How != Variable || h.Program != nftProgram || uses.Mode != detect.Legacy ||
			!uses.Conclusive {
			t.Errorf("%q, the variable: got %+v, the host: %v", what, h, uses)
		}
	}
}

// What speaks against the memory is said with its evidence, whether everything was asked or not.
func TestProgramAgainstMemory(t *testing.T) {
	s := newScene(t)
	host.Run(t, "iptables-nft", "-A", "FORWARD", "-j", "ACCEPT")
	host.Run(t, "iptables-legacy", "-N", "DOCKER-USER")
	s.remember("nft rule-count certain")
	for _, everything := range []bool{false, true} {
		h, uses := s.look(detect.Query{Everything: everything})
		const want = "legacy: Docker keeps its rules in legacy: chain DOCKER-USER in filter"
		if !h.Differs || uses.String() != want {
			t.Errorf("everything: %v: got %+v, the host: %v", everything, h, uses)
		}
		if counted := uses.Of(detect.NFT, detect.IPv4).Tables != nil; counted != everything {
			t.Errorf("everything: %v: got %+v", everything, uses.Of(detect.NFT, detect.IPv4))
		}
	}
}

// With the variable, rules that a guess may have written prove nothing against it.
func TestVariableAndGuess(t *testing.T) {
	s := newScene(t)
	host.Run(t, "iptables-legacy", "-A", "FORWARD", "-j", "ACCEPT")
	s.guessed(detect.Legacy)
	h, uses := s.look(detect.Query{Override: detect.NFT})
	if h.Differs || uses.Conclusive || uses.Mode != detect.Legacy {
		t.Errorf("got %+v, the host: %v", h, uses)
	}
	s.remember("nft default guess")
	h, uses = s.look(detect.Query{})
	if h.Differs || uses.Conclusive {
		t.Errorf("somebody else guessed legacy: got %+v, the host: %v", h, uses)
	}
}
