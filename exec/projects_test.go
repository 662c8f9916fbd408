// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec_test

import (
	"cmp"
	"context"
	"log"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The functions of this file are on docs/library.md: what programs that decide by themselves would call instead.
// The tests below run each on hosts of either backend.

// podProgram returns the program for the rules of a Pod, whose network namespace is open as pod. Rules that are there
// decide. A new namespace has none: then the node's backend decides, if it is certain, and otherwise what the kernel
// can do, by a dry run. Nothing is left behind.
func podProgram(node detect.Result, pod int, name string) (string, error) {
	runtime.LockOSThread() // never unlocked: the thread ends with its goroutine, and never serves another one
	if err := unix.Setns(pod, unix.CLONE_NEWNET); err != nil {
		return "", err
	}
	home := detect.Memory{Mode: node.Mode, Reason: node.Reason, Conclusive: node.Conclusive}
	r := detect.Query{Home: home, DryRun: true, NAT: true}.Run()
	return exec.Find(r.Mode, name)
}

// firewallMode chooses between a program that calls iptables and one that uses nftables itself. On a host that uses
// nft both work, as iptables-nft's rules and nftables' are in one place. On a host that uses legacy, or on a kernel
// that cannot take nft's rules, only iptables-legacy does.
func firewallMode() (nftables bool, iptables string, err error) {
	r := detect.Query{DryRun: true, NAT: true}.Run()
	if r.Mode == detect.NFT {
		return true, "", nil
	}
	iptables, err = exec.Find(detect.Legacy, "iptables")
	return false, iptables, err
}

// felixBackend returns the backend for a setting that is nft, legacy or auto. A setting that the host contradicts
// is obeyed, and logged only if the host's backend is certain.
func felixBackend(setting string) detect.Mode {
	found := detect.Host()
	specified := detect.Mode(setting)
	if specified != detect.NFT && specified != detect.Legacy {
		return found.Mode
	}
	if found.Conclusive && found.Mode != specified {
		log.Printf("the host uses %s, and %s is configured", found, specified)
	}
	return specified
}

// chainsOf returns the backends that have a chain of one's own. A CNI plugin deletes what an earlier process of it
// added, perhaps before the host changed its backend: it looks where its chain is, and not what the host uses now.
func chainsOf(table, chain string) (in []detect.Mode) {
	r := detect.Query{Everything: true}.Run()
	for _, e := range r.Evidence {
		for _, t := range e.Tables {
			if t.Name == table && slices.Contains(t.Chains, chain) && !slices.Contains(in, e.Backend) {
				in = append(in, e.Backend)
			}
		}
	}
	return in
}

// nodeBackend waits for kubelet's chains, because rules that were found before them may be leftovers. Where they do
// not come, as with makeIPTablesUtilChains: false, it returns what the host's rules show, and the reason goes into
// the log.
func nodeBackend(ctx context.Context, wait time.Duration) detect.Mode {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	r, err := detect.Query{WaitFor: detect.ForKubelet}.Wait(ctx)
	if err != nil {
		log.Printf("no chains of kubelet: %v; using %s", err, r)
	}
	return r.Mode
}

// inHosts runs a test on a host of each backend with the rules that the commands of iptables make.
func inHosts(t *testing.T, commands [][]string, test func(t *testing.T, mode detect.Mode)) {
	t.Helper()
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy} {
		t.Run(string(mode), func(t *testing.T) {
			defer runtime.UnlockOSThread()
			host.Netns(t)
			for _, command := range commands {
				host.Run(t, "iptables-"+string(mode), command...)
			}
			test(t, mode)
		})
	}
}

var (
	hint = []string{"-t", "mangle", "-N", detect.HintChain}
	rule = []string{"-t", "nat", "-A", "POSTROUTING", "-s", "192.0.2.1", "-j", "MASQUERADE"}
)

// A Pod without rules gets the node's backend, and one with rules that of its rules.
func TestPodProgram(t *testing.T) {
	inHosts(t, [][]string{hint}, func(t *testing.T, mode detect.Mode) {
		node := detect.Host()
		for _, rules := range []detect.Mode{"", detect.NFT, detect.Legacy} {
			var path string
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				path, err = podProgram(node, newPod(t, rules), "iptables-restore")
			}()
			<-done
			host.Check(t, err)
			want := "/usr/sbin/iptables-" + string(cmp.Or(rules, mode)) + "-restore"
			if path != want {
				t.Errorf("rules in %q: got %s, want %s", rules, path, want)
			}
		}
	})
}

// newPod returns a new network namespace, in which one backend has a rule, if any is named.
func newPod(t *testing.T, rules detect.Mode) (fd int) {
	host.Netns(t)
	if rules != "" {
		host.Run(t, "iptables-"+string(rules), rule...)
	}
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	host.Check(t, err)
	t.Cleanup(func() { host.Check(t, unix.Close(fd)) })
	return fd
}

func TestFirewallMode(t *testing.T) {
	inHosts(t, [][]string{rule}, func(t *testing.T, mode detect.Mode) {
		nftables, path, err := firewallMode()
		host.Check(t, err)
		if nftables != (mode == detect.NFT) || !nftables && filepath.Base(path) != "iptables-legacy" {
			t.Errorf("got %t, %q", nftables, path)
		}
	})
}

func TestFelixBackend(t *testing.T) {
	inHosts(t, [][]string{hint}, func(t *testing.T, mode detect.Mode) {
		for setting, want := range map[string]detect.Mode{"auto": mode, "nft": detect.NFT, "legacy": detect.Legacy} {
			if got := felixBackend(setting); got != want {
				t.Errorf("%s: got %s, want %s", setting, got, want)
			}
		}
	})
}

func TestChainsOf(t *testing.T) {
	const chain = "CNI-HOSTPORT-DNAT"
	inHosts(t, [][]string{{"-t", "nat", "-N", chain}}, func(t *testing.T, mode detect.Mode) {
		if got := chainsOf("nat", chain); !slices.Equal(got, []detect.Mode{mode}) {
			t.Errorf("got %v", got)
		}
		if got := chainsOf("nat", "ANOTHER"); got != nil {
			t.Errorf("another chain: got %v", got)
		}
	})
}

func TestNodeBackend(t *testing.T) {
	inHosts(t, [][]string{hint}, func(t *testing.T, mode detect.Mode) {
		if got := nodeBackend(context.Background(), time.Minute); got != mode {
			t.Errorf("got %s", got)
		}
	})
	inHosts(t, [][]string{rule}, func(t *testing.T, mode detect.Mode) {
		if got := nodeBackend(context.Background(), time.Nanosecond); got != mode {
			t.Errorf("without kubelet: got %s", got)
		}
	})
}
