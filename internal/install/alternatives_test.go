// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

func TestParseGroup(t *testing.T) {
	for _, test := range []struct {
		doc, text string
		want      []member
		choices   string
	}{
		{
			"dpkg",
			"auto\n/usr/sbin/iptables\niptables-save\n/usr/sbin/iptables-save\n\n" +
				"/usr/sbin/iptables-nft\n20\n/usr/sbin/iptables-nft-save\n\n",
			[]member{{"iptables", "/usr/sbin/iptables", false}, {"iptables-save", "/usr/sbin/iptables-save", false}},
			"/usr/sbin/iptables-nft\n20\n/usr/sbin/iptables-nft-save\n\n",
		},
		{
			"chkconfig: a family and a service behind the priority",
			"manual\n/usr/bin/iptables\nip6tables\n/usr/bin/ip6tables\n\n" +
				"/usr/bin/iptables-nft\n@nft@10 iptables\n/usr/bin/ip6tables-nft\n",
			[]member{{"iptables", "/usr/bin/iptables", false}, {"ip6tables", "/usr/bin/ip6tables", false}},
			"/usr/bin/iptables-nft\n@nft@10 iptables\n/usr/bin/ip6tables-nft\n",
		},
		{
			"no slave", "auto\n/usr/sbin/iptables\n\n/x\n1\n",
			[]member{{"iptables", "/usr/sbin/iptables", false}}, "/x\n1\n",
		},
		{doc: "empty"},
		{doc: "no choices", text: "auto\n/usr/sbin/iptables\n"},
		{doc: "half a slave", text: "auto\n/usr/sbin/iptables\niptables-save\n\n/x\n1\n"},
		{doc: "another status", text: "maybe\n/usr/sbin/iptables\n\n/x\n1\n"},
	} {
		var g group
		err := g.parse("iptables", test.text, "/nowhere")
		if (err == nil) != (test.want != nil) || !slices.Equal(g.members, test.want) ||
			err == nil && !slices.Equal(g.choices, strings.Split(test.choices, "\n")) {
			t.Errorf("%s: got %+v, %q, %v", test.doc, g.members, g.choices, err)
		}
	}
}

// In another root no tool can be run: the links under /etc/alternatives are pointed at the switch.
func TestInstallAlternativesInRoot(t *testing.T) {
	debian := func(r root) {
		for _, name := range programs.Names() {
			r.link("/usr/sbin/"+name, "/etc/alternatives/"+name)
			r.link("/etc/alternatives/"+name, "/usr/sbin/xtables-nft-multi")
		}
	}
	const pointed = "/etc/alternatives/iptables -> /usr/sbin/iptables-current"
	r := newRoot(t)
	debian(r)
	if got := r.install("/usr/sbin", Options{Alternatives: true}); !slices.Contains(got, pointed) {
		t.Errorf("got %q", got)
	}
	if got := r.install("/usr/sbin", Options{}); !slices.Contains(got, "/usr/sbin/iptables -> iptables-current") {
		t.Errorf("got %q", got)
	}

	r = newRoot(t)
	debian(r)
	got, err := Install(r.n, "usr/sbin", Options{Alternatives: true})
	if err != nil || !slices.Contains(got, pointed) {
		t.Errorf("without a slash: %q, %v", got, err)
	}

	r = newRoot(t)
	debian(r)
	r.link("/etc/alternatives/iptables", "gone") // it is there to be repaired
	r.link("/usr/sbin/ip6tables", "../../etc/alternatives/ip6tables")
	// However the link is written, this is the one in the directory that is looked at.
	const relative = "/etc/alternatives/ip6tables -> /usr/sbin/iptables-current"
	if got := r.install("/usr/sbin", Options{Alternatives: true}); !slices.Contains(got, relative) {
		t.Errorf("got %q", got)
	}
}

// The owner of another root may have made /etc/alternatives a link to a directory of root's. Nothing is replaced there
// but a link to iptables under one of the six names, whatever leads to it.
func TestInstallAlternativesOfOthers(t *testing.T) {
	r := newRoot(t)
	r.file("/roots/xtables-multi", "secret")
	r.file("/roots/iptables", "secret")
	r.link("/etc/alternatives", "../roots")
	r.link("/usr/sbin/iptables", "/etc/alternatives/xtables-multi")
	var p plan
	err := p.addManaged(r.n, "/etc/alternatives/iptables", false)
	if !errors.Is(err, layout.ErrForeign) {
		t.Errorf("a file: got %v", err)
	}
	const own = "/usr/sbin/iptables -> iptables-current"
	if got := r.install("/usr/sbin", Options{Alternatives: true}); !slices.Contains(got, own) {
		t.Errorf("another name: got %q", got)
	}
}
