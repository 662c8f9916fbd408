// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// docs/library.md links to the first functions of this file. The tests below run each on hosts of either backend.

// firewallMode chooses between a program's own use of nftables and iptables. On a host that uses nft, both work:
// iptables-nft's rules are in nftables, too. On a host that uses legacy, and on a kernel that cannot take nft's rules,
// only iptables-legacy does.
func firewallMode() (nftables bool, iptables exec.Program, err error) {
	r, err := detect.Host("")
	if err != nil {
		return false, exec.Program{}, err
	}
	if r.Backend == detect.NFT {
		return true, exec.Program{}, nil
	}
	iptables, err = exec.Find(r.Backend, "iptables")
	return false, iptables, err
}

// podProgram returns the program for rules in a Pod's network namespace, which is open as pod. What is there decides.
// A new namespace is empty: then it is the node's backend.
func podProgram(node detect.Result, pod int, command string) (program exec.Program, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, and serves no other one
		err = unix.Setns(pod, unix.CLONE_NEWNET)
		if err != nil {
			return
		}
		var r detect.Result
		r, err = detect.Host("")
		if err != nil {
			return
		}
		if r.Reason == detect.Default {
			r = node
		}
		program, err = exec.Find(r.Backend, command)
	}()
	<-done
	return program, err
}

// inHosts runs a test on a host of each backend that has kubelet's hint, or else a rule.
func inHosts(t *testing.T, hint bool, test func(t *testing.T, backend detect.Backend)) {
	t.Helper()
	for _, backend := range []detect.Backend{detect.NFT, detect.Legacy} {
		t.Run(string(backend), func(t *testing.T) {
			host.Netns(t)
			if hint {
				host.Run(t, "iptables-"+string(backend), "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
			} else {
				addRule(t, backend)
			}
			test(t, backend)
		})
	}
}

func addRule(t *testing.T, backend detect.Backend) {
	t.Helper()
	host.Run(t, "iptables-"+string(backend), "-t", "nat", "-A", "POSTROUTING", "-s", "192.0.2.1", "-j", "MASQUERADE")
}

func TestFirewallMode(t *testing.T) {
	for _, hint := range []bool{true, false} {
		inHosts(t, hint, func(t *testing.T, backend detect.Backend) {
			nftables, program, err := firewallMode()
			host.Check(t, err)
			if nftables != (backend == detect.NFT) || !nftables && filepath.Base(program.Path) != "iptables-legacy" {
				t.Errorf("got %t, %+v", nftables, program)
			}
		})
	}
}

// A Pod without rules gets the node's backend, and one with rules that of its rules. The caller stays where it is.
func TestPodProgram(t *testing.T) {
	inHosts(t, true, func(t *testing.T, backend detect.Backend) {
		node, err := detect.Host("")
		host.Check(t, err)
		here := netns(t)
		for rules, want := range map[detect.Backend]detect.Backend{
			"": backend, detect.NFT: detect.NFT, detect.Legacy: detect.Legacy,
		} {
			program, err := podProgram(node, newPod(t, rules), "iptables-restore")
			base := "iptables-" + string(want) + "-restore"
			if filepath.Base(program.Path) != base || err != nil {
				t.Errorf("rules in %q: got %+v, %v, want %s", rules, program, err, base)
			}
		}
		if netns(t) != here {
			t.Error("the caller is in another namespace")
		}
		_, err = podProgram(node, -1, "iptables")
		if err == nil {
			t.Error("no namespace, and no error")
		}
	})
}

func netns(t *testing.T) string {
	t.Helper()
	link, err := os.Readlink("/proc/thread-self/ns/net")
	host.Check(t, err)
	return link
}

// newPod returns a new network namespace, in which one backend has a rule, if any is named.
func newPod(t *testing.T, rules detect.Backend) (pod int) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		host.Netns(t)
		if rules != "" {
			addRule(t, rules)
		}
		var err error
		pod, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
		}
	}()
	<-done
	t.Cleanup(func() { host.Check(t, unix.Close(pod)) })
	return pod
}
