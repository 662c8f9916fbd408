// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Whatever error a system call fails with, it does not say that there is nothing.
func TestRefusedCallIsNoAnswer(t *testing.T) {
	for name, number := range map[string]uint32{
		"socket": unix.SYS_SOCKET, "sendto": unix.SYS_SENDTO, "recvfrom": unix.SYS_RECVFROM,
	} {
		for _, errno := range []unix.Errno{unix.ENOENT, unix.EPERM, unix.ENOSYS, unix.ENOPROTOOPT, unix.EMFILE} {
			t.Run(fmt.Sprint(name, " ", unix.ErrnoName(errno)), func(t *testing.T) {
				host.Netns(t)
				addChain(t, NFT, IPv4, "mangle", hintChain)
				addRules(t, Legacy, IPv4, 1)
				host.RefuseCall(t, number, errno)
				unknown := [2]Answer{Unknown, Unknown}
				for _, ask := range []func() (Result, error){func() (Result, error) { return Host("") }, Survey} {
					r, err := ask()
					nft := r.Evidence.NFT
					if r.Certain || nft.Kernel != Unknown || nft.Hint != unknown || nft.Program != unknown ||
						nft.Counted != Unknown || !errors.Is(err, errno) || !errors.Is(nft.Err, errno) {
						t.Errorf("got %+v, %v", r, err)
					}
					if !strings.Contains(r.Because(), "nft could not be read") {
						t.Errorf("got %q", r.Because())
					}
				}
			})
		}
	}
}

// Without nfnetlink there is no nf_tables: the kernel says so when a socket is opened.
func TestWithoutNFTables(t *testing.T) {
	host.Netns(t)
	host.RefuseCall(t, unix.SYS_SOCKET, unix.EPROTONOSUPPORT)
	r, err := Host("")
	nft := r.Evidence.NFT
	if summary(r) != "legacy only-supported guess" || nft.Kernel != No || nft.Counted != NotAsked ||
		r.Evidence.TakesRules != NotAsked || err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	r, err = Host(NFT)
	if summary(r) != "nft held guess" || err != nil {
		t.Errorf("nft is held: got %+v, %v", r, err)
	}
}

// Without CAP_NET_ADMIN the kernel does not answer, and that is not the same as "no". Only that a family of legacy has
// no table is known to all who can read the list.
func TestWithoutCapability(t *testing.T) {
	host.Netns(t)
	addChain(t, Legacy, IPv4, "mangle", hintChain)
	host.DropCapability(t, unix.CAP_NET_ADMIN)
	for _, ask := range []func() (Result, error){func() (Result, error) { return Host("") }, Survey} {
		r, err := ask()
		if summary(r) != "nft default guess" || !errors.Is(err, unix.EPERM) {
			t.Errorf("got %+v, %v", r, err)
		}
		nft, legacy := r.Evidence.NFT, r.Evidence.Legacy
		unknown := [2]Answer{Unknown, Unknown}
		if nft.Hint != unknown || nft.Canary != unknown || nft.Program != unknown || nft.Counted != Unknown {
			t.Errorf("got %+v", nft)
		}
		if legacy.Hint != [2]Answer{Unknown, No} || legacy.Canary != [2]Answer{Unknown, No} ||
			legacy.Program != [2]Answer{No, No} || legacy.Counted != Unknown || !errors.Is(legacy.Err, unix.EPERM) {
			t.Errorf("got %+v", legacy)
		}
		if strings.Count(err.Error(), "not permitted") != 2 {
			t.Errorf("the same is said more than once for a backend: %v", err)
		}
	}
}

// A security module can refuse only a part. A marker that was read is still one.
func TestLegacyRefused(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EACCES, unix.ENOMEM} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			host.Netns(t)
			addChain(t, NFT, IPv4, "filter", "DOCKER-USER")
			addRules(t, Legacy, IPv4, 1)
			host.RefuseCall(t, unix.SYS_GETSOCKOPT, errno)
			r, err := Host("")
			if summary(r) != "nft host-program guess" || !errors.Is(err, errno) || r.Evidence.NFT.Err != nil ||
				r.Evidence.Legacy.Program != [2]Answer{Unknown, No} {
				t.Errorf("got %+v, %v", r, err)
			}
			r, err = Host(Legacy)
			if summary(r) != "legacy held guess" || !errors.Is(err, errno) {
				t.Errorf("legacy is held: got %+v, %v", r, err)
			}
		})
	}
}

// A table in which no marker can be is read only for the number of its rules, and its error is not forgotten either:
// what was asked about and failed is not recorded.
func TestCountRefused(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-t", "security", "-N", "A")
	host.RefuseCall(t, unix.SYS_GETSOCKOPT, unix.EACCES)
	r, err := Host("")
	legacy := r.Evidence.Legacy
	if summary(r) != "nft default guess" || !errors.Is(err, unix.EACCES) || legacy.Counted != Unknown ||
		legacy.Program != [2]Answer{No, No} {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Where descriptors are scarce, the error says so, whichever question found none left.
func TestWithoutDescriptors(t *testing.T) {
	host.Netns(t)
	addChain(t, Legacy, IPv4, "filter", "DOCKER-USER")
	next, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	host.Check(t, err)
	host.Check(t, unix.Close(next))
	for left, want := range []struct {
		summary string
		err     error
	}{
		{"nft default guess", unix.EMFILE},
		{"nft default guess", unix.EMFILE}, // for nf_tables
		{"legacy host-program certain", nil},
	} {
		var before unix.Rlimit
		host.Check(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &before))
		limit := unix.Rlimit{Cur: uint64(next + left), Max: before.Max}
		host.Check(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &limit, nil))
		r, err := Host("")
		host.Check(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &before, nil))
		if summary(r) != want.summary || !errors.Is(err, want.err) || (err == nil) != (want.err == nil) {
			t.Errorf("%d left: got %+v, %v, want %s, %v", left, r, err, want.summary, want.err)
		}
	}
}

// Of tables that are too large to be read, the markers are unknown. That is no error, and no reason to doubt what else
// was read.
func TestTooLarge(t *testing.T) {
	host.Netns(t)
	addRules(t, NFT, IPv4, 1)
	const n = 30000 // more than 4 MiB
	addRules(t, Legacy, IPv4, n)
	addChain(t, Legacy, IPv4, "filter", "DOCKER-USER")
	r := ask(t, "")
	legacy := r.Evidence.Legacy
	if summary(r) != "legacy rule-count guess" || legacy.Program != [2]Answer{Unknown, No} || legacy.Rules <= n ||
		legacy.Counted != Unknown || legacy.Hint != [2]Answer{No, No} || legacy.Err != nil {
		t.Errorf("got %+v", r)
	}
	if !strings.HasSuffix(r.Because(), "legacy at most 30006; legacy is too large to be read") {
		t.Errorf("got %q", r.Because())
	}
	addChain(t, NFT, IPv4, "mangle", canaryChain)
	if r = ask(t, ""); summary(r) != "nft kubelet-canary certain" {
		t.Errorf("a stronger marker: got %+v", r)
	}
}

// A list of names that another user owns is not an empty one. It is so in a user namespace that does not own the
// network.
func TestListOfAnother(t *testing.T) {
	host.Netns(t)
	addChain(t, Legacy, IPv4, "mangle", hintChain)
	host.DropCapability(t, unix.CAP_DAC_OVERRIDE)
	host.DropCapability(t, unix.CAP_DAC_READ_SEARCH)
	// Only this thread's groups: sudo gives its program group 0, which may read the list.
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	host.Check(t, unix.Setfsgid(1000))
	host.Check(t, unix.Setfsuid(1000))
	_, err := os.ReadFile("/proc/thread-self/net/ip_tables_names")
	if !errors.Is(err, unix.EACCES) {
		t.Fatalf("the test's own user can read the list: %v", err)
	}
	r, err := Host("")
	e := r.Evidence
	if r.Certain || !errors.Is(err, unix.EACCES) || e.Legacy.Kernel != Unknown || e.Loadable != NotAsked ||
		e.TakesRules != NotAsked {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A bound is no answer: native rules count for nothing, however many there are, and those of iptables are counted by
// table behind them. A table that is full has more than legacy.
func TestBoundIsNoAnswer(t *testing.T) {
	const many = nft.MaxObjects + 1000
	full := "add table ip blocklist; add chain ip blocklist c" +
		strings.Repeat("; add rule ip blocklist c accept", many)
	for _, test := range []struct {
		doc   string
		steps []step
		want  string
		rules int
	}{
		{"a firewall in legacy", []step{native(full), withRules(Legacy, IPv4, 50)}, "legacy rule-count guess", 0},
		{"ten rules behind", []step{native(full), withRules(NFT, IPv4, 10), withRules(Legacy, IPv4, 3)},
			"nft rule-count guess", 4},
		{"a full table", []step{withRules(NFT, IPv4, many), withRules(Legacy, IPv4, many+2000)},
			"nft rule-count guess", nft.MaxObjects},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			for _, make := range test.steps {
				make(t)
			}
			r := ask(t, "")
			if summary(r) != test.want || r.Evidence.NFT.Rules != test.rules {
				t.Errorf("got %s, %s", summary(r), r.Because())
			}
		})
	}
}
