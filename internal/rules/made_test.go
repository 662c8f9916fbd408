// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
	"github.com/iptables-wrappers/iptables-wrappers/test/rules"
)

// refused are the extensions of which a kernel may have nothing, or that need what is not made here.
var refused = map[string]string{
	"ipt_CLUSTERIP": "a module, which Linux 6.3 has no more",
	"ipt_ULOG":      "a module, which Linux 3.17 has no more",
	"xt_LED":        "a module",
	"xt_ipvs":       "a module",
	"xt_SECMARK":    "SELinux",
	"xt_SET":        "a set",
	"xt_set":        "a set",
	"xt_cgroup":     "a hierarchy of cgroups",
	"xt_nfacct":     "an accounting object",
	"xt_rateest":    "an estimator",
}

// What iptables-nft of this machine has made, in full also that of Debian 11 and of sid, of each match and each target
// that its package has, is not taken for nft's. Its base chains are as bases has them.
func TestMadeByIptables(t *testing.T) {
	releases := [][]string{{"/usr/sbin/xtables-nft-multi"}}
	roots := []string{""}
	if host.All() {
		old, sid := host.OldIptables(t), host.NewestIptables(t)
		libraries, err := filepath.Glob(strings.TrimSuffix(old, "sbin/xtables-nft-multi") + "lib/*")
		host.Check(t, err)
		releases = append(releases, []string{"chroot", sid, "/usr/sbin/xtables-nft-multi"},
			[]string{"env", "LD_LIBRARY_PATH=" + libraries[0], "XTABLES_LIBDIR=" + libraries[0] + "/xtables", old})
		roots = append(roots, sid)
	}
	host.Netns(t)
	missing := map[string]bool{}
	for _, root := range roots {
		files, err := filepath.Glob(root + "/usr/lib/*/xtables/lib*_*.so")
		host.Check(t, err)
		for _, file := range files {
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "lib"), ".so")
			if !strings.HasPrefix(name, "ebt_") && !strings.HasPrefix(name, "arpt_") {
				missing[name] = true
			}
		}
	}
	if len(missing) < 100 {
		t.Fatalf("the package has %d extensions", len(missing))
	}
	for _, release := range releases {
		host.Run(t, "nft", "flush", "ruleset")
		want := 0
		for restore, rules := range madeRules(t, missing) {
			program, table, _ := strings.Cut(restore, " ")
			argv := slices.Concat(release, []string{program, "--noflush"})
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stdin = strings.NewReader("*" + table + "\n:USER - [0:0]\n" + strings.Join(rules, "") + "COMMIT\n")
			printed, err := cmd.CombinedOutput()
			switch {
			case err == nil:
				want += len(rules)
			case !strings.Contains(restore, "refused"):
				t.Errorf("%s: %s: %v: %s%s", release, restore, err, printed, strings.Join(rules, ""))
			}
		}
		got := 0
		for name, table := range read(t) {
			got += table.Rules
			if table.NFTMade > 0 || table.Wrong != nil {
				t.Errorf("%s: %s: got %+v", release, name, table)
			}
		}
		if got != want {
			t.Errorf("%s: read %d of %d rules", release, got, want)
		}
	}
	for extension := range missing {
		t.Errorf("%s has no rule here", extension)
	}
}

// madeRules returns the rules of testdata by a program and a table, "iptables-restore filter", and takes their
// extensions from those that are missing. A rule that may be refused is alone, under what ends in "refused" and its
// number.
func madeRules(t *testing.T, missing map[string]bool) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(string(host.Read(t, "testdata/iptables.rules"))) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		delete(missing, words[0])
		_, rule, _ := strings.Cut(line, " -t "+words[3]+" ")
		restore := words[1] + "-restore " + words[3]
		if refused[words[0]] != "" {
			restore = fmt.Sprintf("%s\n# refused %d", restore, len(all))
		}
		all[restore] = append(all[restore], rule)
	}
	return all
}

// Nor are the rules of programs that use iptables.
func TestPrograms(t *testing.T) {
	host.Netns(t)
	for _, dump := range rules.Dumps() {
		commands := map[string]string{".save": "iptables-nft-restore", ".save6": "ip6tables-nft-restore"}
		restore := commands[filepath.Ext(dump.File)]
		if restore == "" {
			continue
		}
		host.Run(t, "nft", "flush", "ruleset")
		host.Feed(t, dump.Text, restore)
		got := 0
		for name, table := range read(t) {
			got += table.Rules
			if table.NFTMade > 0 || table.Wrong != nil {
				t.Errorf("%s: %s: got %+v", dump.File, name, table)
			}
		}
		want := strings.Count(dump.Text, "\n-A ")
		if got != want {
			t.Errorf("%s: read %d of %d rules", dump.File, got, want)
		}
	}
}
