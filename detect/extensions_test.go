// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import "testing"

// What is loaded is known. What is not is missing only where no module can bring it.
func TestExtensions(t *testing.T) {
	const (
		matches = "thread-self/net/ip_tables_matches=conntrack\nconntrack\nmark\n"
		targets = "thread-self/net/ip_tables_targets=MARK\nmultiport\n"
		kernel  = "sys/kernel/osrelease=6.1"
	)
	for _, test := range []struct {
		doc   string
		files []string
		want  map[Extension]Answer
	}{
		{
			"no module can be loaded",
			[]string{matches, targets, kernel},
			map[Extension]Answer{
				{"conntrack", false}: Yes, {"MARK", true}: Yes, {"statistic", false}: No, {"REDIRECT", true}: No,
				{"multiport", false}: No, {"mar", false}: No, {"", false}: No,
			},
		},
		{
			"none any more",
			[]string{matches, targets, kernel, "sys/kernel/modules_disabled=1\n"},
			map[Extension]Answer{{"conntrack", false}: Yes, {"statistic", false}: No},
		},
		{
			"a module may bring it",
			[]string{matches, targets, kernel, "sys/kernel/modules_disabled=0\n"},
			map[Extension]Answer{{"conntrack", false}: Yes, {"statistic", false}: Unknown, {"REDIRECT", true}: Unknown},
		},
		{
			"ip_tables is not loaded",
			[]string{kernel},
			map[Extension]Answer{{"conntrack", false}: Unknown, {"MARK", true}: Unknown},
		},
	} {
		proc := fakeProc(t, test.files...)
		for x, want := range test.want {
			all := []Support{{Family: IPv4, Extension: x}, {Family: IPv6, Extension: x}}
			lookForExtensions(all, proc)
			if all[0].Has != want || all[0].Err != nil {
				t.Errorf("%s: %v: got %v, %v, want %v", test.doc, x, all[0].Has, all[0].Err, want)
			}
			if all[1].Has != Unknown {
				t.Errorf("%s: %v: got %v for IPv6, which has no list", test.doc, x, all[1].Has)
			}
		}
	}
}

// A list that cannot be read says nothing, and the reason is kept.
func TestExtensionsUnreadable(t *testing.T) {
	proc := fakeProc(t, "thread-self/net/ip_tables_matches/directory=", "sys/kernel/osrelease=6.1")
	all := []Support{{Family: IPv4, Extension: Extension{Name: "mark"}}}
	lookForExtensions(all, proc)
	if all[0].Has != Unknown || all[0].Err == nil {
		t.Errorf("got %v, %v", all[0].Has, all[0].Err)
	}
}
