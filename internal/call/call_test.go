// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

// The literal, and what other packages look for.
func TestMarker(t *testing.T) {
	if marker != programs.Marker() {
		t.Errorf("%q is not %q", marker, programs.Marker())
	}
}

// What a call says that cannot run the program, and its status: never 1.
func TestCannotRun(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		try    string
	}{
		{fmt.Errorf("%w: xtables-nft-multi", programs.ErrMissing), 127, "install the nft version of iptables"},
		{fmt.Errorf("x: %w", programs.ErrRecursion), 126, "that file is the wrapper itself"},
		{fs.ErrPermission, 126, "let this user execute that file"},
		{unix.E2BIG, 126, "pass fewer arguments or a smaller environment"},
	} {
		var stderr strings.Builder
		status := cannotRun(&stderr, "iptables", detect.Result{Mode: detect.NFT}, test.err)
		lines := strings.Split(stderr.String(), "\n")
		if status != test.status || len(lines) != 3 ||
			!strings.HasPrefix(lines[0], "iptables-wrapper: cannot run iptables for nft: "+test.err.Error()) ||
			!strings.HasPrefix(lines[1], "iptables-wrapper: try: "+test.try) {
			t.Errorf("%v: status %d, %q", test.err, status, lines)
		}
	}
	t.Setenv(programs.ModeVariable, "both")
	var stderr strings.Builder
	status := wrap(Wrapper(), []string{"iptables", "--version"}, &stderr)
	if status != 2 || !strings.Contains(stderr.String(), `"both" is not one of`) {
		t.Errorf("a wrong mode: status %d, %q", status, stderr.String())
	}
}

// What can be added, and where, says what the kernel is asked. With the override nothing is.
func TestLook(t *testing.T) {
	for _, test := range []struct {
		command     string
		override    detect.Mode
		dryRun, nat bool
	}{
		{"iptables -S", "", false, false},
		{"iptables -t nat -S", "", false, false},
		{"iptables -A INPUT -j ACCEPT", "", true, false},
		{"iptables -t nat -A POSTROUTING -j MASQUERADE", "", true, true},
		{"ip6tables-restore", "", true, true},
		{"iptables -t nat -A POSTROUTING -j MASQUERADE", detect.Legacy, false, false},
	} {
		q := look(self.Process{}, strings.Fields(test.command), test.override).query
		if q.DryRun != test.dryRun || q.NAT != test.nat || q.Override != test.override {
			t.Errorf("%s, override %q: got %+v", test.command, test.override, q)
		}
	}
}

// What is remembered does not hold where something below it has decided.
func TestVoid(t *testing.T) {
	guess := detect.Memory{Mode: detect.NFT, Reason: detect.Default}
	for reason, want := range map[detect.Reason]bool{
		detect.KubeletHint:   false,
		detect.KubeletCanary: false,
		detect.Remembered:    false,
		detect.HostProgram:   true,
		detect.RuleCount:     true,
		detect.Default:       true,
	} {
		r := detect.Result{Mode: detect.Legacy, Reason: reason}
		if got := void(guess, r); got != want {
			t.Errorf("%s: got %v", reason, got)
		}
		if void(detect.Memory{}, r) {
			t.Errorf("%s: nothing was remembered", reason)
		}
	}
}

// The call follows another one that was faster, unless it cannot run what that one has stored.
func TestToRun(t *testing.T) {
	own := layout.Decision{Result: detect.Result{Mode: detect.NFT, Reason: detect.RuleCount}}
	for _, test := range []struct {
		doc    string
		stored detect.Mode
		legacy error // why legacy's program cannot be run
		want   detect.Mode
		reason detect.Reason
	}{
		{
			doc:    "its own",
			stored: detect.NFT,
			want:   detect.NFT,
			reason: detect.RuleCount,
		},
		{
			doc:    "another call's",
			stored: detect.Legacy,
			want:   detect.Legacy,
			reason: detect.Remembered,
		},
		{
			doc:    "the program is missing",
			stored: detect.Legacy,
			legacy: programs.ErrMissing,
			want:   detect.NFT,
			reason: detect.RuleCount,
		},
		{
			doc:    "the program cannot be executed",
			stored: detect.Legacy,
			legacy: fs.ErrPermission,
			want:   detect.Legacy,
			reason: detect.Remembered,
		},
	} {
		f := found{programs: self.Both{Errors: map[detect.Mode]error{detect.Legacy: test.legacy}}}
		got := f.toRun(own, layout.Stored{Mode: test.stored})
		if got.Mode != test.want || got.Reason != test.reason {
			t.Errorf("%s: got %s, %s, want %s, %s", test.doc, got.Mode, got.Reason, test.want, test.reason)
		}
	}
}
