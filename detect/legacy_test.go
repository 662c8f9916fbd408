// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// fakeProc makes a directory with these files of /proc: "path=content".
func fakeProc(t *testing.T, files ...string) string {
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
		list     = "thread-self/net/ip6_tables_names="
		ipv6     = "thread-self/net/if_inet6="
		netProc  = "thread-self/net/dev="
		kernel   = "sys/kernel/osrelease=6.1"
		disabled = "sys/kernel/modules_disabled="
	)
	for _, test := range []struct {
		doc       string
		files     []string
		tables    string
		supported Answer
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
		p := newLegacyProbe(IPv6, forCall)
		p.proc = fakeProc(t, test.files...)
		if supported := p.list(); supported != test.supported || strings.Join(p.tables, " ") != test.tables ||
			p.err != nil {
			t.Errorf("%s: got %v, %q, %v, want %v, %q", test.doc, supported, p.tables, p.err, test.supported,
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
	p := newLegacyProbe(IPv4, forCall)
	defer p.close()
	p.proc = t.TempDir()
	if supported := p.list(); supported != Yes || !errors.Is(p.err, unix.ENOENT) {
		t.Errorf("got %v, %v, want yes, no such file", supported, p.err)
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
			p := newLegacyProbe(IPv4, forCall)
			defer p.close()
			if got := p.loaded(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// What was spoiled by a change is read again, and not without end.
func TestRetryChanged(t *testing.T) {
	for _, test := range []struct {
		err   error
		tries int
	}{
		{unix.EAGAIN, attempts}, {errBadTable, attempts}, {errInterrupted, attempts},
		{unix.EPERM, 1}, {unix.ENOENT, 1},
	} {
		tries := 0
		err := retryChanged(func() error { tries++; return test.err })
		if tries != test.tries || !errors.Is(err, test.err) {
			t.Errorf("%v: got %v after %d tries, want %d", test.err, err, tries, test.tries)
		}
		tries = 0
		err = retryChanged(func() error {
			tries++
			if tries == 1 {
				return test.err
			}
			return nil
		})
		if recovers := err == nil; recovers != (test.tries > 1) {
			t.Errorf("%v once: got %v after %d tries", test.err, err, tries)
		}
	}
}

// A table that is not listed is not asked about: that would create it.
func TestNoTableIsCreated(t *testing.T) {
	host.Netns(t)
	for _, q := range []Query{{}, {Everything: true}, {Everything: true, DryRun: true, NAT: true}} {
		r := q.Run()
		for _, family := range []string{"ip", "ip6"} {
			names, err := os.ReadFile("/proc/thread-self/net/" + family + "_tables_names")
			if err != nil || len(names) > 0 {
				t.Errorf("%+v: %s tables %q, %v", q, family, names, err)
			}
		}
		if e := r.Of(Legacy, IPv4); e.Hint != No || e.Rules != exactly(0) || e.Err != nil {
			t.Errorf("%+v: got %+v", q, e)
		}
	}
}
