// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
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

func TestCheckPrograms(t *testing.T) {
	r := newRoot(t)
	if err := Check(r.n, "/usr/sbin"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"xtables-nft-multi", "xtables-legacy-multi"} {
		r := newRoot(t)
		if err := os.Remove(r.dir + "/usr/sbin/" + name); err != nil {
			t.Fatal(err)
		}
		if err := Check(r.n, "/usr/sbin"); !errors.Is(err, programs.ErrMissing) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v", err)
		}
		mode := strings.TrimSuffix(strings.TrimPrefix(name, "xtables-"), "-multi")
		r.file("/usr/sbin/iptables-"+mode, "")
		if err := Check(r.n, "/usr/sbin"); !errors.Is(err, programs.ErrMissing) || !strings.Contains(err.Error(), "iptables-"+mode+"-save") {
			t.Errorf("with iptables' program alone: got %v", err)
		}
	}
	// An image without iptables, or with one from before 1.8: one line says so.
	for _, name := range []string{"xtables-nft-multi", "xtables-legacy-multi"} {
		if err := os.Remove(r.dir + "/usr/sbin/" + name); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(r.n, "/usr/sbin"); !errors.Is(err, programs.ErrMissing) || !strings.HasPrefix(err.Error(), "iptables 1.8.4 or newer is not installed: ") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("without iptables: got %v", err)
	}
}

// A program that takes too long is told from one that fails, or is killed by another.
func TestOutput(t *testing.T) {
	for _, script := range []string{"exit 4", "kill -9 $$"} {
		if _, _, err := output(time.Hour, "/bin/sh", []string{"sh", "-c", script}); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", script, err)
		}
	}
	if _, _, err := output(time.Millisecond, "/bin/sh", []string{"sh", "-c", "exec sleep 60"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestCheckVersion(t *testing.T) {
	for _, test := range []struct {
		line      string
		ok        bool
		unchecked bool
	}{
		{"iptables v1.8.9 (nf_tables)", true, false},
		{"iptables v1.8.4 (nf_tables)", true, false},
		{"iptables v1.10.0 (nf_tables)", true, false},
		{"iptables v1.8.3 (nf_tables)", false, false},
		{"iptables v1.8.9 (legacy)", false, false},
		{"iptables v1.6.1", false, true},
		{"hello", false, true},
		{"", false, true},
	} {
		err := checkVersion("p", "nft", test.line)
		if (err == nil) != test.ok || errors.Is(err, ErrUnchecked) != test.unchecked {
			t.Errorf("%q: got %v", test.line, err)
		}
	}
}
