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

// The first functions of this file are on docs/library.md. The tests below run each on hosts of either backend.

// firewallMode chooses between a program's own use of nftables and iptables. On a host that uses nft, both work:
// iptables-nft's rules are in nftables, too. On a host that uses legacy, and on a kernel that cannot take nft's rules,
// only iptables-legacy does.
func firewallMode() (nftables bool, iptables string, err error) {
	r := detect.Query{DryRun: true, NAT: true}.Run()
	if r.Mode == detect.NFT {
		return true, "", nil
	}
	iptables, err = exec.Find(r.Mode, "iptables")
	return false, iptables, err
}

// podProgram returns the program for rules in a Pod's network namespace, which is open as pod. What is there decides.
// A new namespace is empty: then it is the node's backend.
func podProgram(node detect.Result, pod int, command string) (path string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, and serves no other one
		err = unix.Setns(pod, unix.CLONE_NEWNET)
		if err != nil {
			return
		}
		r := detect.Query{DryRun: true, NAT: true}.Run()
		if r.Reason == detect.Default {
			r = node
		}
		path, err = exec.Find(r.Mode, command)
	}()
	<-done
	return path, err
}

// inHosts runs a test on a host of each backend that has kubelet's hint, or else a rule.
func inHosts(t *testing.T, hint bool, test func(t *testing.T, mode detect.Mode)) {
	t.Helper()
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy} {
		t.Run(string(mode), func(t *testing.T) {
			host.Netns(t)
			if hint {
				host.Run(t, "iptables-"+string(mode), "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
			} else {
				addRule(t, mode)
			}
			test(t, mode)
		})
	}
}

func addRule(t *testing.T, mode detect.Mode) {
	t.Helper()
	host.Run(t, "iptables-"+string(mode), "-t", "nat", "-A", "POSTROUTING", "-s", "192.0.2.1", "-j", "MASQUERADE")
}

func TestFirewallMode(t *testing.T) {
	for _, hint := range []bool{true, false} {
		inHosts(t, hint, func(t *testing.T, mode detect.Mode) {
			nftables, path, err := firewallMode()
			host.Check(t, err)
			if nftables != (mode == detect.NFT) || !nftables && filepath.Base(path) != "iptables-legacy" {
				t.Errorf("got %t, %q", nftables, path)
			}
		})
	}
}

// A Pod without rules gets the node's backend, and one with rules that of its rules. The caller stays where it is.
func TestPodProgram(t *testing.T) {
	inHosts(t, true, func(t *testing.T, mode detect.Mode) {
		node := detect.Host()
		here := netns(t)
		for rules, want := range map[detect.Mode]detect.Mode{
			"": mode, detect.NFT: detect.NFT, detect.Legacy: detect.Legacy,
		} {
			path, err := podProgram(node, newPod(t, rules), "iptables-restore")
			if base := "iptables-" + string(want) + "-restore"; filepath.Base(path) != base || err != nil {
				t.Errorf("rules in %q: got %s, %v, want %s", rules, path, err, base)
			}
		}
		if netns(t) != here {
			t.Error("the caller is in another namespace")
		}
		if _, err := podProgram(node, -1, "iptables"); err == nil {
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
func newPod(t *testing.T, rules detect.Mode) (pod int) {
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
