// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// While the maker of a guess is at work, the guess holds although it has left no table, and is a guess all the same.
// Afterwards the next call decides as if nobody had guessed. Kubelet's chains outrank either.
func TestAnswerWhilePending(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-w", "-A", "FORWARD", "-j", "ACCEPT")
	f := newFake(t)
	maker := exec.Command("sleep", "1h")
	f.check(maker.Start())
	_, start := stateAndStart(strconv.Itoa(maker.Process.Pid))
	guess := func(mode detect.Mode) (path string) {
		about := fmt.Sprintf("%s default guess:%d.%s %s it was so", mode, maker.Process.Pid, start, life)
		return f.put("/dev/shm", f.p.UID, about)
	}
	path := guess(detect.NFT)
	answer := func(override detect.Mode) detect.Result {
		t.Helper()
		m := f.read()
		r, doubted := m.Answer(detect.Query{Override: override, Remembered: m.Remembered()})
		if doubted {
			t.Errorf("doubted: %v", r)
		}
		return r
	}
	const why = "remembered as a guess since "
	r := answer("")
	if r.Mode != detect.NFT || r.Reason != detect.Remembered || r.Conclusive || r.Remembered.Conclusive ||
		r.Remembered.Reason != detect.Default || len(r.Because()) < len(why) || r.Because()[:len(why)] != why {
		t.Errorf("at work: got %v, %+v", r, r.Remembered)
	}
	if r := answer(detect.Legacy); r.Mode != detect.Legacy || r.Reason != detect.Override {
		t.Errorf("the variable: got %v", r)
	}
	m := f.read()
	if r, _ := m.Answer(detect.Query{}); r.Mode != detect.Legacy || r.Reason != detect.RuleCount || !r.Conclusive {
		t.Errorf("asked without the memory: got %v", r)
	}
	f.check(os.Remove(f.real(path)))
	guess(detect.Legacy)
	m = f.read()
	if r, doubted := m.Answer(detect.Query{}); r.Mode != detect.Legacy || !doubted {
		t.Errorf("the guess counts, although its program is missing: got %v, doubted: %v", r, doubted)
	}
	f.check(os.Remove(f.real(path)))
	guess(detect.NFT)
	host.Run(t, "iptables-legacy", "-w", "-t", "mangle", "-N", detect.HintChain)
	if r := answer(""); r.Mode != detect.Legacy || r.Reason != detect.KubeletHint || !r.Conclusive {
		t.Errorf("kubelet: got %v", r)
	}
	host.Run(t, "iptables-legacy", "-w", "-t", "mangle", "-X", detect.HintChain)
	f.check(maker.Process.Kill())
	_ = maker.Wait()
	if r := answer(""); r.Mode != detect.Legacy || r.Reason != detect.RuleCount || !r.Conclusive {
		t.Errorf("it has ended and written nothing: got %v", r)
	}
}

// A certain count in favor of the backend that somebody has guessed is doubted; anything else is not.
func TestAnswerDoubted(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-w", "-A", "FORWARD", "-j", "ACCEPT")
	f := newFake(t)
	check := func(doc string, reason detect.Reason, conclusive, doubted bool) detect.Result {
		t.Helper()
		r, got := f.read().Answer(detect.Query{})
		if r.Mode != detect.Legacy || r.Reason != reason || r.Conclusive != conclusive || got != doubted {
			t.Errorf("%s: got %v, conclusive %v, doubted %v", doc, r, r.Conclusive, got)
		}
		return r
	}
	check("nobody guessed", detect.RuleCount, true, false)
	mark := f.put("/dev/shm", f.p.UID, "nft default guess "+life)
	check("the other one was guessed", detect.RuleCount, true, false)
	f.check(os.Remove(f.real(mark)))
	mark = f.put("/dev/shm", f.p.UID, "legacy default guess "+life)
	r := check("it was guessed", detect.RuleCount, false, true)
	const why = "somebody in this network namespace acted on a guess (%q), and rules that a guess wrote are no evidence"
	if r.Uncertainty() != fmt.Sprintf(why, mark) || r.Memorable() != nil {
		t.Errorf("got %q, %v", r.Uncertainty(), r.Memorable())
	}
	host.Feed(t, "add table ip nat\nadd chain ip nat own { type filter hook input priority 0; }\n"+
		"add rule ip nat own accept\nadd rule ip nat own accept\n", "nft", "-f", "-")
	check("it is a guess anyhow", detect.RuleCount, false, false)
	host.Run(t, "nft", "delete", "table", "ip", "nat")
	host.Run(t, "iptables-legacy", "-w", "-N", "DOCKER-USER")
	check("a program of the host", detect.HostProgram, true, false)
}
