// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// fakeRoot makes a directory with these files: "path=content".
func fakeRoot(t *testing.T, files ...string) string {
	dir := t.TempDir()
	for _, file := range files {
		path, content, _ := strings.Cut(file, "=")
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What the files of /proc say about ip6_tables, where IPv6 itself is and is not in the kernel.
func TestListIPv6(t *testing.T) {
	const (
		list     = "proc/thread-self/net/ip6_tables_names="
		ipv6     = "proc/thread-self/net/if_inet6="
		netProc  = "proc/thread-self/net/dev="
		kernel   = "proc/sys/kernel/osrelease=6.1"
		disabled = "proc/sys/kernel/modules_disabled="
	)
	for _, test := range []struct {
		doc    string
		files  []string
		tables string
		works  Answer
	}{
		{"loaded", []string{list + "mangle\n", ipv6, netProc}, "mangle", Yes},
		{"loaded, several tables", []string{list + "security\nmangle2\nraw\n", ipv6, netProc}, "security raw", Yes},
		{"loaded, no table", []string{list, ipv6, netProc}, "", Yes},
		{"loaded before 5.15, and IPv6 off: its tables are nobody's", []string{list + "filter\n", netProc}, "", No},
		{"no IPv6, modules can be loaded", []string{netProc, kernel, disabled + "0\n"}, "", Unknown},
		{"no IPv6, modules cannot be loaded any more", []string{netProc, kernel, disabled + "1\n"}, "", No},
		{"no IPv6, a kernel without modules", []string{netProc, kernel}, "", No},
		{"no IPv6, and /proc/sys is not there", []string{netProc}, "", Unknown},
	} {
		p := newLegacyProbe(IPv6)
		p.root = fakeRoot(t, test.files...)
		if works := p.list(); works != test.works || strings.Join(p.tables, " ") != test.tables ||
			p.err != nil {
			t.Errorf("%s: got %v, %q, %v, want %v, %q", test.doc, works, p.tables, p.err, test.works,
				test.tables)
		}
		if p.fd >= 0 {
			t.Errorf("%s: a socket was opened, which can load IPv6", test.doc)
		}
	}
}

// Without its list, x_tables is known by whether it answers at all, and its tables are not known.
func TestListUnreadable(t *testing.T) {
	host.Netns(t)
	p := newLegacyProbe(IPv4)
	defer p.close()
	p.root = t.TempDir()
	if works := p.list(); works != Yes || !errors.Is(p.err, unix.ENOENT) {
		t.Errorf("got %v, %v, want yes, no such file", works, p.err)
	}
	if hint, canary, err := p.kubelet(); hint != Unknown || canary != Unknown || !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v, %v, %v, want unknown", hint, canary, err)
	}
}

// Whether the kernel has x_tables shows in how it refuses a question. What a filter of system calls says shows nothing.
func TestLoaded(t *testing.T) {
	for _, test := range []struct {
		call  uint32
		errno unix.Errno
		want  Answer
	}{
		{0, 0, Yes},
		{unix.SYS_GETSOCKOPT, unix.EPERM, Yes}, // somebody is there to refuse
		{unix.SYS_GETSOCKOPT, unix.ENOPROTOOPT, No},
		{unix.SYS_GETSOCKOPT, unix.EACCES, Unknown},
		{unix.SYS_GETSOCKOPT, unix.ENOENT, Unknown},
		{unix.SYS_SOCKET, unix.ENOPROTOOPT, Unknown},
	} {
		t.Run(fmt.Sprint(test.call, " ", test.errno), func(t *testing.T) {
			host.Netns(t)
			if test.errno != 0 {
				refuseCall(t, test.call, test.errno)
			}
			p := newLegacyProbe(IPv4)
			defer p.close()
			if got := p.loaded(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// What was spoiled by a change is read again, and what was refused is not.
func TestRetryChanged(t *testing.T) {
	for err, again := range map[error]bool{
		unix.EAGAIN: true, errBadTable: true, netlink.ErrInterrupted: true, unix.EPERM: false, unix.ENOENT: false,
	} {
		tries := 0
		got := retryChanged(func() error {
			tries++
			if tries == 1 {
				return err
			}
			return nil
		})
		if recovers := got == nil; recovers != again {
			t.Errorf("%v once: got %v after %d tries", err, got, tries)
		}
		tries = 0
		got = retryChanged(func() error {
			tries++
			return err
		})
		if got != err || tries > 10 {
			t.Errorf("%v: got %v after %d tries", err, got, tries)
		}
	}
}

// A table that is not listed is not asked about: that would create it.
func TestNoTableIsCreated(t *testing.T) {
	host.Netns(t)
	for _, q := range []Query{{}, {Everything: true}, {Everything: true, DryRun: true, NAT: true}} {
		r := q.Ask()
		for _, family := range []string{"ip", "ip6"} {
			names, err := os.ReadFile("/proc/thread-self/net/" + family + "_tables_names")
			if err != nil || len(names) > 0 {
				t.Errorf("%+v: %s tables %q, %v", q, family, names, err)
			}
		}
		if a := r.Legacy[IPv4]; a.Hint != No || a.Rules != No || a.Err != nil {
			t.Errorf("%+v: got %+v", q, a)
		}
	}
}

// A table beyond the bound is known by its header alone.
func TestLargeLegacyTable(t *testing.T) {
	for _, test := range []struct {
		doc   string
		rules string
		any   Answer
		chain Answer
		count int
	}{
		{"no chain", strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 50), Yes, No, 50},
		{
			"a rule beside a chain", ":MINE - [0:0]\n-A INPUT -j MINE\n" + strings.Repeat("-A MINE -j DROP\n", 50),
			Yes, Unknown, 53,
		},
		{"a chain alone", ":MINE - [0:0]\n" + strings.Repeat("-A MINE -j DROP\n", 50), Unknown, Unknown, 52},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			host.Feed(t, "*filter\n"+test.rules+"COMMIT\n", "iptables-legacy-restore", "-w")
			p := newProber(Query{})
			defer p.close()
			p.legacy[IPv4].largest = 1 << 10
			r := p.ask()
			a := r.Legacy[IPv4]
			if a.Rules != test.any || a.HostChain != test.chain || a.Count != test.count ||
				errors.Is(a.Err, errTooMuch) != (test.chain == Unknown) {
				t.Errorf("got %+v", a)
			}
			if certain := test.any == Yes; r.Conclusive != certain || r.Mode != Legacy && certain {
				t.Errorf("got %+v", r.Decision)
			}
		})
	}
}

// Where the entries are refused, the header stands.
func TestEntriesRefused(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "*filter\n:MINE - [0:0]\n-A INPUT -j MINE\n"+strings.Repeat("-A MINE -j ACCEPT\n", 30)+"COMMIT\n",
		"iptables-legacy-restore", "-w")
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -j ACCEPT\n", 25)+"COMMIT\n", "iptables-nft-restore")
	refuseOption(t, soGetEntries, unix.EAGAIN)
	r := Query{}.Ask()
	if r.Mode != Legacy || r.Reason != RuleCount || r.Conclusive || r.Legacy[IPv4].Count != 33 || !r.Momentary() {
		t.Errorf("got %+v, %v", r.Decision, r.Err())
	}
}

// A module that iptables-legacy could load is a file of this kernel's release, compressed or not.
func TestLoadable(t *testing.T) {
	var name unix.Utsname
	host.Check(t, unix.Uname(&name))
	modules := "lib/modules/" + unix.ByteSliceToString(name.Release[:]) + "/kernel/net/"
	for file, want := range map[string][2]bool{
		modules + "ipv4/netfilter/ip_tables.ko":                    {true, false},
		modules + "ipv4/netfilter/ip_tables.ko.xz":                 {true, false},
		modules + "ipv6/netfilter/ip6_tables.ko.zst":               {false, true},
		modules + "ipv4/netfilter/iptable_nat.ko":                  {false, false},
		"lib/modules/1.2.3/kernel/net/ipv4/netfilter/ip_tables.ko": {false, false},
	} {
		root := fakeRoot(t, file+"=")
		for _, f := range families {
			p := newLegacyProbe(f)
			p.root = root
			if got := p.loadable(); got != want[f] {
				t.Errorf("%s, %s: got %v", file, f, got)
			}
		}
	}
}
