// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestParseGroup(t *testing.T) {
	for _, test := range []struct {
		doc, text string
		want      []member
		choices   string
	}{
		{
			"dpkg", "auto\n/usr/sbin/iptables\niptables-save\n/usr/sbin/iptables-save\n\n/usr/sbin/iptables-nft\n20\n/usr/sbin/iptables-nft-save\n\n",
			[]member{{"iptables", "/usr/sbin/iptables"}, {"iptables-save", "/usr/sbin/iptables-save"}},
			"/usr/sbin/iptables-nft\n20\n/usr/sbin/iptables-nft-save\n\n",
		},
		{
			"chkconfig: a family and a service behind the priority",
			"manual\n/usr/bin/iptables\nip6tables\n/usr/bin/ip6tables\n\n/usr/bin/iptables-nft\n@nft@10 iptables\n/usr/bin/ip6tables-nft\n",
			[]member{{"iptables", "/usr/bin/iptables"}, {"ip6tables", "/usr/bin/ip6tables"}},
			"/usr/bin/iptables-nft\n@nft@10 iptables\n/usr/bin/ip6tables-nft\n",
		},
		{"no slave", "auto\n/usr/sbin/iptables\n\n/x\n1\n", []member{{"iptables", "/usr/sbin/iptables"}}, "/x\n1\n"},
		{doc: "empty"},
		{doc: "no choices", text: "auto\n/usr/sbin/iptables\n"},
		{doc: "half a slave", text: "auto\n/usr/sbin/iptables\niptables-save\n\n/x\n1\n"},
		{doc: "another status", text: "maybe\n/usr/sbin/iptables\n\n/x\n1\n"},
	} {
		g, err := parseGroup("iptables", test.text)
		if (err == nil) != (test.want != nil) || !reflect.DeepEqual(g.members, test.want) || g.choices != test.choices {
			t.Errorf("%s: got %+v, %v", test.doc, g, err)
		}
	}
}

func TestInside(t *testing.T) {
	root := t.TempDir()
	for link, target := range map[string]string{
		"up": "..", "sibling": "./x/../y", "loop": "loop", "out": "../../../../../../../../../../../../../../../../etc", "to-out": "out/passwd",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]error{
		"/":                        nil,
		"/..":                      ErrOutside,
		"/usr/../..":               ErrOutside,
		"..":                       ErrOutside,
		root + "/up/x":             nil,
		root + "/sibling":          nil,
		root + "/not/there/at/all": nil,
		root + "/out":              ErrOutside,
		root + "/out/":             ErrOutside,
		root + "/to-out":           ErrOutside,
		root + "/not/../out":       ErrOutside,
	} {
		if err := inside(path); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	if err := inside(root + "/loop"); err == nil {
		t.Error("a loop stays inside")
	}
}

func TestMachineOf(t *testing.T) {
	header := "\x7fELF\x02\x01\x01" + string(make([]byte, 9)) + "\x02\x00\x3e\x00"
	for _, test := range []struct{ header, want string }{
		{header, "\x02\x01\x3e\x00"},
		{header + "more", "\x02\x01\x3e\x00"},
		{header[:19], ""},
		{"#!/bin/sh\n          ", ""},
		{"", ""},
	} {
		if got := machineOf([]byte(test.header)); got != test.want {
			t.Errorf("%q: got %q, want %q", test.header, got, test.want)
		}
	}
}
