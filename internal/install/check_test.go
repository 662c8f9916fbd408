// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Others lists a file once, by whatever path it is found, and not what the wrapper serves.
func TestOthers(t *testing.T) {
	r := newRoot(t)
	r.install("/usr/sbin", Options{})
	r.link("/sbin", "usr/sbin") // as in every current distribution
	r.link("/usr/local/sbin/ip6tables", "/usr/sbin/xtables-legacy-multi")
	r.link("/usr/local/sbin/iptables", "/bin/true")
	r.link("/usr/local/sbin/iptables-save", "/usr/sbin/iptables-wrapper")
	want := []string{"/usr/local/sbin/ip6tables"}
	if got := r.n.Others("/usr/sbin"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := r.n.Others("/sbin"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r.link("/usr/sbin/iptables-restore", "xtables-nft-multi")
	if got := r.n.Others("/usr/local/sbin"); !slices.Equal(got, []string{"/usr/sbin/iptables-restore"}) {
		t.Errorf("got %q", got)
	}
}

func (r root) remove(paths ...string) {
	r.Helper()
	for _, path := range paths {
		if err := os.Remove(r.dir + path); err != nil {
			r.Fatal(err)
		}
	}
}

// Both backends, or nft alone. Of what is there, nothing may be missing.
func TestCheckPrograms(t *testing.T) {
	const nft, legacy = "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"
	for _, test := range []struct {
		doc     string
		prepare func(root)
		remark  string
		err     string // "" for none
	}{
		{
			doc:     "both",
			prepare: func(root) {},
		},
		{
			doc:     "nft alone",
			prepare: func(r root) { r.remove(legacy) },
			remark:  onlyNFT,
		},
		{
			doc:     "legacy alone",
			prepare: func(r root) { r.remove(nft) },
			err:     "no such program: xtables-nft-multi or iptables-nft, looked for in /usr/sbin",
		},
		{
			doc:     "neither, or both from before 1.8",
			prepare: func(r root) { r.remove(nft, legacy) },
			err:     "iptables 1.8.4 or newer is not installed: no such program: xtables-nft-multi",
		},
		{
			doc: "some of nft's programs",
			prepare: func(r root) {
				r.remove(nft)
				r.file("/usr/sbin/iptables-nft", "")
			},
			err: "no such program: xtables-nft-multi or iptables-nft-save",
		},
		{
			doc: "some of legacy's programs",
			prepare: func(r root) {
				r.remove(legacy)
				r.file("/usr/sbin/iptables-legacy", "")
			},
			err: "no such program: xtables-legacy-multi or iptables-legacy-save",
		},
		{
			doc: "some of legacy's programs, but not iptables",
			prepare: func(r root) {
				r.remove(legacy)
				r.file("/usr/sbin/iptables-legacy-save", "")
			},
			err: "no such program: xtables-legacy-multi or iptables-legacy,",
		},
		{
			doc: "some of nft's programs, and no other",
			prepare: func(r root) {
				r.remove(nft, legacy)
				r.file("/usr/sbin/iptables-nft", "")
			},
			err: "no such program: xtables-legacy-multi",
		},
		{
			doc: "a legacy program that cannot be executed",
			prepare: func(r root) {
				r.remove(legacy)
				r.file(legacy+"/directory", "")
			},
			err: "execve /usr/sbin/xtables-legacy-multi: permission denied",
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			r := newRoot(t)
			test.prepare(r)
			remarks, err := Check(r.n, "/usr/sbin")
			if got := strings.Join(remarks, "\n"); got != test.remark {
				t.Errorf("got %q, want %q", got, test.remark)
			}
			switch {
			case err == nil && test.err != "":
				t.Errorf("no error, want %q", test.err)
			case err != nil && (test.err == "" || !strings.HasPrefix(err.Error(), test.err)):
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}

// A program that takes too long is told from one that fails, or is killed by another.
func TestOutput(t *testing.T) {
	for _, script := range []string{"exit 4", "kill -9 $$"} {
		_, _, err := output(time.Hour, "/bin/sh", []string{"sh", "-c", script})
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", script, err)
		}
	}
	_, _, err := output(time.Millisecond, "/bin/sh", []string{"sh", "-c", "exec sleep 60"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	// Half of the limit is printed as it is, on both streams together.
	const half = "head -c 32m /dev/zero"
	stdout, stderr, err := output(time.Hour, "/bin/sh", []string{"sh", "-c", half + "; " + half + " >&2"})
	if len(stdout) != mostOutput/2 || len(stderr) != mostOutput/2 || err != nil {
		t.Errorf("got %d and %d bytes, %v", len(stdout), len(stderr), err)
	}
	for _, script := range []string{"cat /dev/zero", "cat /dev/zero >&2"} {
		_, _, err := output(time.Hour, "/bin/sh", []string{"sh", "-c", script})
		if !errors.Is(err, errTooMuch) {
			t.Errorf("%s: got %v", script, err)
		}
	}
}

// A program that has ended, and has left its output to a child, is not waited for.
func TestOutputOfChild(t *testing.T) {
	t.Parallel() // it takes a second, and computes nothing
	stdout, _, err := output(time.Hour, "/bin/sh", []string{"sh", "-c", "echo printed; sleep 60 &"})
	if stdout != "printed\n" || !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("got %q, %v", stdout, err)
	}
}

func TestCheckVersion(t *testing.T) {
	for _, test := range []struct {
		line      string
		ok        bool
		unchecked bool
		loses     bool
	}{
		{line: "iptables v1.8.9 (nf_tables)", ok: true},
		{line: "iptables v1.8.8 (nf_tables)", ok: true},
		{line: "iptables v1.8.7 (nf_tables)", ok: true, loses: true},
		{line: "iptables v1.8.4 (nf_tables)", ok: true, loses: true},
		{line: "iptables v1.10.0 (nf_tables)", ok: true},
		{line: "iptables v2.0.0 (nf_tables)", ok: true},
		{line: "iptables v1.8.3 (nf_tables)", loses: true},
		{line: "iptables v1.8.9 (legacy)"},
		{line: "iptables v1.8.7 (legacy)"},
		{line: "iptables v1.6.1", unchecked: true},
		{line: "hello", unchecked: true},
		{line: "", unchecked: true},
	} {
		err := checkVersion("p", detect.NFT, test.line)
		if (err == nil) != test.ok || errors.Is(err, ErrUnchecked) != test.unchecked {
			t.Errorf("%q: got %v", test.line, err)
		}
		if LosesRules(test.line) != test.loses {
			t.Errorf("%q: loses: %t", test.line, !test.loses)
		}
	}
	if err := checkVersion("p", detect.Legacy, "iptables v1.8.7 (legacy)"); err != nil {
		t.Error(err)
	}
}

// Each of the six commands says its backend, under whatever name.
func TestBackend(t *testing.T) {
	for line, want := range map[string]detect.Mode{
		"iptables v1.8.9 (nf_tables)\n":      detect.NFT,
		"ip6tables-save v1.8.9 (legacy)":     detect.Legacy,
		"iptables-nft-restore v1 (whatever)": "",
		"iptables v1.4.21":                   "",
		"nft v1.8.9 (nf_tables)":             "",
		"iptables v1.8.9 (nf_tables) more":   "",
		"":                                   "",
	} {
		if got := Backend(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
