// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A name is known to be the host's if the kernel answers with an error about the other backend, in which no name
// was found.
func TestKnown(t *testing.T) {
	for _, test := range []struct {
		doc    string
		reason detect.Reason
		user   int
		err    error
		both   bool // the other backend has a name, too
		want   bool
	}{
		{doc: "kubelet's hint", reason: detect.KubeletHint, err: unix.EIO, want: true},
		{doc: "an old kubelet's", reason: detect.KubeletCanary, err: unix.EIO, want: true},
		{doc: "Docker's", reason: detect.HostProgram, err: unix.EIO, want: true},
		{doc: "a guess", err: unix.EIO},
		{doc: "no error", reason: detect.HostProgram},
		{doc: "no answer of the kernel", reason: detect.HostProgram, err: xtables.ErrHidden},
		{doc: "another user", reason: detect.HostProgram, user: 1, err: unix.EIO, want: true},
		{doc: "another user may only lack a file", reason: detect.HostProgram, user: 1, err: unix.EACCES},
		{doc: "names in both", reason: detect.HostProgram, err: unix.EIO, both: true},
		{doc: "only one could be used", reason: detect.OnlySupported, want: true},
	} {
		s := permitted()
		s.host.Reason = test.reason
		s.process.user = test.user
		s.host.Evidence.Legacy.Err = test.err
		if test.both {
			s.host.Evidence.Legacy.Markers = []detect.Marker{{Program: "ufw"}}
		}
		if s.known() != test.want {
			t.Errorf("%s: got %v", test.doc, !test.want)
		}
	}
}

// Where nothing runs, the host's backend is wanted, guess or not.
func TestWanted(t *testing.T) {
	for _, runs := range []detect.Backend{"", detect.Legacy} {
		s := permitted()
		s.names[0].call.Backend = runs
		want := detect.NFT
		if runs != "" {
			want = runs
		}
		if got := s.wanted(); got != want {
			t.Errorf("%q runs: got %q", runs, got)
		}
	}
}

// What changes while it is read is read again, three times at most.
func TestRepeat(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{{iptables.ErrChanged, 3}, {iptables.ErrChanged, 3}, {unix.EIO, 1}, {nil, 1}} {
		reads := 0
		err := repeat(func() error {
			reads++
			return test.err
		})
		if reads != test.want || !errors.Is(err, test.err) {
			t.Errorf("%v: read %d times, %v", test.err, reads, err)
		}
	}
}

// One table that cannot be read, and legacy was not read as a whole.
func TestReadLegacy(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-N", "MINE")
	for _, test := range []struct {
		names []string
		whole bool
	}{{[]string{"filter"}, true}, {[]string{"none", "filter"}, false}, {[]string{"filter", "none"}, false}} {
		got := readLegacy([2][]string{detect.IPv4: test.names})
		if got.whole != test.whole || len(got.tables) != 1 {
			t.Errorf("%q: got %+v", test.names, got)
		}
	}
}

// The rules of a family use its extensions.
func TestUses(t *testing.T) {
	chains := func(uses string) []iptables.Chain {
		return []iptables.Chain{{Rules: []iptables.Rule{{Uses: []string{uses}}}}}
	}
	c := contents{tables: []iptables.Table{{Chains: chains("-m set")}, {IPv6: true, Chains: chains("-m mark")}}}
	v4, v6 := c.uses(false), c.uses(true)
	if len(v4) != 1 || !v4["-m set"] || len(v6) != 1 || !v6["-m mark"] {
		t.Errorf("got %v, %v", v4, v6)
	}
}

// The commands that list legacy's rules work here, and list something.
func TestShow(t *testing.T) {
	for _, test := range []struct {
		doc    string
		netRaw bool
		tables [2][]string
		want   string
	}{
		{doc: "IPv6 alone", netRaw: true, tables: [2][]string{detect.IPv6: {"nat"}}, want: "ip6tables-legacy-save -c"},
		{doc: "no NET_RAW", tables: [2][]string{{"filter"}, {"nat"}}, want: showEvidence},
		{doc: "no table", netRaw: true, want: showEvidence},
	} {
		s := permitted()
		s.lists = map[string]bool{"nft": true, "iptables-legacy-save": true, "ip6tables-legacy-save": true}
		s.process.netRaw = test.netRaw
		s.listed = test.tables
		got := s.show(detect.Legacy)
		if !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s: got %q", test.doc, got)
		}
	}
}
