// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// dropCapabilities leaves the test's thread, which is not used again, without any.
func dropCapabilities(t *testing.T) {
	t.Helper()
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capset(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
}

// A guess holds while its backend has one of the five tables. What holds is below kubelet's chains and above the rules,
// which are not even counted.
func TestRemembered(t *testing.T) {
	const nftRule = "iptables-nft -A INPUT -j ACCEPT"
	for _, test := range []struct {
		script     string
		remembered Memory
		want       row
	}{
		{":", guess(Legacy), row{Default, NFT, true, false}},
		{nftRule, guess(Legacy), row{RuleCount, NFT, true, true}},
		{nftRule + "; ip6tables-legacy -t security -S", guess(Legacy), row{Remembered, Legacy, true, false}},
		{nftRule + "; iptables-legacy -A INPUT -j ACCEPT; iptables-legacy -F", guess(Legacy),
			row{Remembered, Legacy, true, false}},
		{"iptables-legacy -A INPUT -j ACCEPT", guess(NFT), row{RuleCount, Legacy, true, true}},
		{"iptables-legacy -A INPUT -j ACCEPT; nft add table ip other; nft add table inet filter", guess(NFT),
			row{RuleCount, Legacy, true, true}},
		{"iptables-legacy -A INPUT -j ACCEPT; nft add table ip6 security", guess(NFT),
			row{Remembered, NFT, true, false}},
		{nftRule + "; iptables-nft -F; iptables-legacy -A INPUT -j ACCEPT", guess(NFT),
			row{Remembered, NFT, true, false}},
		{nftRule, certain(Legacy), row{Remembered, Legacy, true, true}},
		{nftRule, Memory{Mode: Legacy, Reason: Override}, row{Remembered, Legacy, true, false}},
		{"iptables-legacy -A INPUT -j ACCEPT", certain(NFT), row{Remembered, NFT, true, true}},
		{nftRule + "; iptables-nft -t mangle -N " + CanaryChain, certain(Legacy), row{KubeletCanary, NFT, true, true}},
	} {
		t.Run(fmt.Sprint(test.script, " ", test.remembered.Mode, test.remembered.Conclusive), func(t *testing.T) {
			host.Netns(t)
			host.Run(t, "sh", "-ec", test.script)
			for _, q := range []Query{{}, {Everything: true}} {
				q.Remembered = test.remembered
				r := q.Run()
				if r.Mode != test.want.mode || r.Reason != test.want.reason || r.Conclusive != test.want.conclusive {
					t.Errorf("%+v: got %v, conclusive %v, want %v", q, r, r.Conclusive, test.want)
				}
				if holds := r.Reason == Remembered; holds != (r.Remembered != nil) || holds &&
					*r.Remembered != q.Remembered {
					t.Errorf("%+v: got %+v", q, r.Remembered)
				}
				if r.Reason == Remembered && !q.Everything && r.Of(NFT, IPv4).Rules != (Count{0, Unbounded}) {
					t.Errorf("the rules were counted: %+v", r.Evidence)
				}
			}
		})
	}
}

// Whether a guess left a table is not known without CAP_NET_ADMIN, and what is not known takes nothing back.
func TestRememberedUnprivileged(t *testing.T) {
	host.Netns(t)
	dropCapabilities(t)
	if r := (Query{Remembered: guess(Legacy)}).Run(); r.Reason == Remembered {
		t.Errorf("legacy's list, which can be read, has no table: got %v", r)
	}
	if r := (Query{Remembered: guess(NFT)}).Run(); r.Reason != Remembered || r.Conclusive {
		t.Errorf("got %v, conclusive %v", r, r.Conclusive)
	}
}

func TestMemorable(t *testing.T) {
	withError := func(err error) Result {
		r := Query{}.result(unasked())
		r.Evidence[2].fail(errors.New("another"))
		r.Evidence[2].fail(fmt.Errorf("read: %w", err))
		return r
	}
	for _, errno := range []unix.Errno{unix.ENFILE, unix.EMFILE, unix.ENOMEM, unix.ENOBUFS, unix.EINTR, unix.EAGAIN} {
		if err := withError(errno).Memorable(); !errors.Is(err, errno) {
			t.Errorf("%v: got %v", errno, err)
		}
		r := withError(unix.EACCES)
		r.Evidence[0].Features = []Feature{{Name: FeatureTable, Has: Unknown, Err: errno}}
		if err := r.Memorable(); err != errno {
			t.Errorf("%v in a dry run: got %v", errno, err)
		}
		r.Conclusive = true
		if err := r.Memorable(); err != nil {
			t.Errorf("a conclusive answer: got %v", err)
		}
	}
	for _, errno := range []unix.Errno{unix.EACCES, unix.ENOENT, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPERM} {
		if err := withError(errno).Memorable(); err != nil {
			t.Errorf("%v: got %v", errno, err)
		}
	}
}

func unknownHint(e Evidence) bool { return e.Hint == Unknown }

// What needs CAP_NET_ADMIN was refused, or it was not asked: a seccomp filter that refuses a socket says nothing of it.
func TestMemorableNeedsCapability(t *testing.T) {
	for _, test := range []struct {
		doc       string
		change    func(*testing.T)
		memorable bool
		blind     bool
	}{
		{"all can be asked", func(*testing.T) {}, true, false},
		{"without capabilities", dropCapabilities, false, true},
		{"a filter for one address family", func(t *testing.T) { refuseCall(t, unix.SYS_SOCKET, unix.EAFNOSUPPORT) },
			true, true},
		{"a filter that says EPERM", func(t *testing.T) { refuseCall(t, unix.SYS_SOCKET, unix.EPERM) }, true, true},
		{"no descriptor", func(t *testing.T) { refuseCall(t, unix.SYS_SOCKET, unix.ENFILE) }, false, true},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			test.change(t)
			r := Host()
			blind := slices.ContainsFunc(r.Evidence, unknownHint)
			if r.Conclusive || (r.Memorable() == nil) != test.memorable || blind != test.blind {
				t.Errorf("got %v, %v, blind %v", r, r.Memorable(), blind)
			}
		})
	}
	t.Run("legacy's answer is enough", func(t *testing.T) {
		host.Netns(t)
		host.Run(t, "iptables-legacy", "-w", "-t", mangle, "-A", "INPUT", "-j", "ACCEPT")
		refuseCall(t, unix.SYS_SENDTO, unix.ENOSYS)
		if r := Host(); r.Conclusive || r.Memorable() != nil || !slices.ContainsFunc(r.Evidence, unknownHint) {
			t.Errorf("got %v, %v", r, r.Memorable())
		}
	})
	t.Run("legacy's refusal is enough", func(t *testing.T) {
		host.Netns(t)
		host.Run(t, "iptables-legacy", "-w", "-t", mangle, "-A", "INPUT", "-j", "ACCEPT")
		refuseCall(t, unix.SYS_SENDTO, unix.ENOSYS)
		dropCapabilities(t)
		if r := Host(); r.Conclusive || !errors.Is(r.Memorable(), unix.EPERM) {
			t.Errorf("got %v, %v", r, r.Memorable())
		}
	})
}

func TestRememberedText(t *testing.T) {
	since := time.Date(2026, 11, 23, 4, 12, 0, 0, time.FixedZone("CET", 3600))
	for _, test := range []struct {
		m                 Memory
		text, uncertainty string
	}{
		{Memory{NFT, RuleCount, true, "nft has 15 rules and legacy has no rules", since},
			"nft: remembered since 2026-11-23 03:12 UTC; " +
				"what decided then: nft has 15 rules and legacy has no rules", ""},
		{Memory{NFT, RuleCount, false, "", since},
			"nft: remembered as a guess since 2026-11-23 03:12 UTC; " +
				"what decided then: rule-count", "no kubelet chain was found, and what this container remembers is a " +
				"guess"},
		{guess(Legacy), "legacy: remembered as a guess",
			"no kubelet chain was found, and what this container remembers is a guess"},
	} {
		e := unasked()
		for i := range e {
			e[i].Hint, e[i].Canary = No, No
		}
		if r := (Query{Remembered: test.m}).result(e); r.String() != test.text || r.Uncertainty() != test.uncertainty {
			t.Errorf("got %q and %q, want %q and %q", r, r.Uncertainty(), test.text, test.uncertainty)
		}
	}
	if r := (Result{Mode: NFT, Reason: Remembered}); r.String() != "nft: this container remembers it" {
		t.Errorf("got %q", r)
	}
}
