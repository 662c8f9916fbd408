// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// root has files, each "path=content".
func root(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		path, content, _ := strings.Cut(file, "=")
		path = filepath.Join(dir, path)
		host.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		host.Check(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

// The kernel is asked only where that loads nothing. Without asking, what is listed is there, and what is not listed is
// missing only where no module provides it.
func TestHas(t *testing.T) {
	const (
		matches  = "proc/thread-self/net/ip_tables_matches=conntrack\nconntrack\nmark\n"
		targets  = "proc/thread-self/net/ip_tables_targets=MARK\nmultiport\n"
		release  = "proc/sys/kernel/osrelease=6.1-x\n"
		enabled  = "proc/sys/kernel/modules_disabled=0\n"
		disabled = "proc/sys/kernel/modules_disabled=1\n"
		loaded   = "proc/modules=xt_owner 16384 1 - Live 0x0\nipt_REJECT 16384 0 - Live 0x0\n"
		builtIn  = "lib/modules/6.1-x/modules.builtin=kernel/net/netfilter/xt_owner.ko\n"
		none     = "lib/modules/6.1-x/modules.builtin="
		loadable = "lib/modules/6.1-x/modules.dep=net/xt_owner.ko.xz: net/x_tables.ko.xz\nnet/x_tables.ko.xz:\n"
		file     = "lib/modules/6.1-x/net/xt_owner.ko.xz="
		other    = "lib/modules/6.1-y/modules.dep=\n"
		large    = "lib/modules/6.1-x/modules.dep="
	)
	const asked = detect.NotAsked // nothing is: it stands for a question here
	for _, test := range []struct {
		doc   string
		files []string
		name  string
		want  detect.Answer
	}{
		{"listed", []string{matches, targets, enabled, release}, "conntrack", detect.Yes},
		{"a target that is listed", []string{matches, targets, enabled, release}, "MARK", detect.Yes},
		{"listed as a target", []string{matches, targets, release}, "multiport", detect.No},
		{"listed as a match", []string{matches, targets, release}, "MASQUERADE", detect.No},
		{"not listed, in a kernel without modules", []string{matches, targets, release}, "owner", detect.No},
		{"not listed, and no more modules", []string{matches, targets, release, disabled}, "owner", detect.No},
		{"not listed, and modules", []string{matches, targets, release, enabled}, "owner", detect.Unknown},
		{"not listed, without /proc/sys", []string{matches, targets}, "owner", detect.Unknown},
		{"no list, in a kernel without modules", []string{release}, "owner", asked},
		{"no list, and no more modules", []string{release, disabled}, "owner", asked},
		{"no list, and modules", []string{release, enabled}, "owner", detect.Unknown},
		{"no list, but its module is loaded", []string{release, enabled, loaded}, "owner", asked},
		{"no list, and another module is loaded", []string{release, enabled, loaded}, "statistic", detect.Unknown},
		{"a module of the family is loaded", []string{release, enabled, loaded}, "REJECT", asked},
		{"loaded, though nothing else is", []string{release, enabled, loaded, none, loadable}, "owner", asked},
		{"no list, but it is built in", []string{release, enabled, builtIn}, "owner", asked},
		{"a module that is there", []string{release, enabled, none, loadable, file}, "owner", detect.Unknown},
		{"a module whose file is gone", []string{release, enabled, none, loadable}, "owner", detect.No},
		{"no such module", []string{release, enabled, none, loadable, file}, "statistic", detect.No},
		{"not listed, and no such module", []string{matches, release, enabled, none, loadable}, "statistic", detect.No},
		{"what is built in is unknown", []string{release, enabled, loadable, file}, "statistic", detect.Unknown},
		{"another kernel's modules", []string{release, enabled, none, other}, "statistic", detect.Unknown},
		{"a long list of modules", []string{release, enabled, none, large + strings.Repeat("x", largest)}, "owner",
			detect.No},
		{"too long a list", []string{release, enabled, none, large + strings.Repeat("x", largest+1)}, "owner",
			detect.Unknown},
	} {
		k := look(root(t, test.files...))
		for _, x := range Wanted {
			if x.Name != test.name {
				continue
			}
			got, err := k.has(Support{Family: detect.IPv4, Extension: x}, func(Support) (detect.Answer, error) {
				return asked, nil
			})
			if got != test.want || err != nil {
				t.Errorf("%s: %s: got %v, %v, want %v", test.doc, test.name, got, err, test.want)
			}
		}
	}
}

// Each family has its own lists, and its own modules.
func TestFamilies(t *testing.T) {
	k := look(root(t, "proc/thread-self/net/ip6_tables_matches=owner\n", "proc/sys/kernel/modules_disabled=0\n",
		"proc/modules=ipt_REJECT 16384 0 - Live 0x0\n"))
	asked := errors.New("asked")
	ask := func(Support) (detect.Answer, error) { return detect.Unknown, asked }
	owner, reject := Extension{Name: "owner", module: "xt_owner"}, Extension{Name: "REJECT", Target: true}
	for _, test := range []struct {
		Support
		want detect.Answer
		err  error
	}{
		{Support{Family: detect.IPv4, Extension: owner}, detect.Unknown, nil},
		{Support{Family: detect.IPv6, Extension: owner}, detect.Yes, nil},
		{Support{Family: detect.IPv4, Extension: reject}, detect.Unknown, asked},
		{Support{Family: detect.IPv6, Extension: reject}, detect.Unknown, nil},
	} {
		got, err := k.has(test.Support, ask)
		if got != test.want || err != test.err {
			t.Errorf("%s of %s: got %v, %v, want %v, %v", test.Name, test.Family, got, err, test.want, test.err)
		}
	}
}
