// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// release is an iptables of Debian, with its library and extensions.
type release struct {
	name string
	env  []string
	argv []string // of iptables-nft and its like
}

// releases are those of Debian 11, of this machine and of sid.
func releases(t *testing.T) (all []release) {
	old := strings.TrimSuffix(host.OldIptables(t), "/usr/sbin/xtables-nft-multi")
	libraries, err := filepath.Glob(old + "/usr/lib/*")
	host.Check(t, err)
	return []release{
		{
			name: "Debian 11's",
			env:  []string{"LD_LIBRARY_PATH=" + libraries[0], "XTABLES_LIBDIR=" + libraries[0] + "/xtables"},
			argv: []string{old + "/usr/sbin/xtables-nft-multi"},
		},
		{name: "this machine's", argv: []string{"/usr/sbin/xtables-nft-multi"}},
		{name: "sid's", argv: []string{"chroot", host.NewestIptables(t), "/usr/sbin/xtables-nft-multi"}},
	}
}

// run starts a command of iptables and returns what it prints.
func (r release) run(words ...string) (output string, err error) { return r.feed("", words...) }

// feed is run with something to read on standard input.
func (r release) feed(stdin string, words ...string) (output string, err error) {
	argv := slices.Concat(r.argv, words)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), r.env...)
	cmd.Stdin = strings.NewReader(stdin)
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}

// lines are the rules that -save prints of a table.
func lines(printed string) (rules []string) {
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "-A ") {
			rules = append(rules, strings.TrimSpace(line))
		}
	}
	return rules
}

// dump reads all rules, in their order.
func dump(t *testing.T) (rules []nft.Message) {
	t.Helper()
	var conn nft.Conn
	defer conn.Close()
	err := conn.Dump(unix.NFT_MSG_GETRULE, unix.AF_UNSPEC, func(m nft.Message) error {
		m.Body = slices.Clone(m.Body)
		rules = append(rules, m)
		return nil
	})
	host.Check(t, err)
	return rules
}

// rows are the lines of a file in testdata that are neither comments nor empty.
func rows(t *testing.T, file string) (all []string) {
	t.Helper()
	for line := range strings.Lines(string(host.Read(t, "testdata/"+file))) {
		if !strings.HasPrefix(line, "#") && line != "\n" {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// native is a row of nft.rules.
type native struct {
	want   listing
	family string
	newest bool // nft
	rule   string
	prints string
}

func nativeRules(t *testing.T) (all []native) {
	words := map[string]listing{"faithful": faithful, "newer": newer, "altered": altered, "unreadable": unreadable}
	for _, row := range rows(t, "nft.rules") {
		word, rest, _ := strings.Cut(row, " ")
		family, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
		rule, prints, _ := strings.Cut(rest, "=>")
		want, known := words[word]
		if !known {
			t.Fatalf("%q is no word for what is listed", word)
		}
		plain, newest := strings.CutSuffix(family, "+")
		all = append(all, native{want, plain, newest, strings.TrimSpace(rule), strings.TrimSpace(prints)})
	}
	return all
}

// Whatever nft makes in a table of iptables, listingOf says what iptables-nft lists of it: nft makes each rule in a
// chain, and this machine's iptables-nft and the newest list it.
func TestListing(t *testing.T) {
	all := releases(t)[1:]
	host.Netns(t)
	for _, family := range []string{"ip", "ip6"} {
		for _, newest := range []bool{false, true} {
			for _, fails := range []bool{false, true} {
				var rules []native
				for _, n := range nativeRules(t) {
					if n.family == family && n.newest == newest && fails == (n.want == newer || n.want == unreadable) {
						rules = append(rules, n)
					}
				}
				testListing(t, all, family, newest, fails, rules)
			}
		}
	}
}

func testListing(t *testing.T, all []release, family string, newest, fails bool, rules []native) {
	t.Helper()
	ruleset := fmt.Sprintf("flush ruleset\ntable %s filter {\nset S { type ipv4_addr; flags dynamic; }\n"+
		"counter c { packets 0 bytes 0; }\nchain USER {}\n", family)
	for i, n := range rules {
		ruleset += fmt.Sprintf("chain C%d { %s; }\n", i, n.rule)
	}
	maker := exec.Command("nft", "-f", "-")
	if newest {
		maker = exec.Command("chroot", host.NewestIptables(t), "/usr/sbin/nft", "-f", "-")
	}
	maker.Stdin = strings.NewReader(ruleset + "}\n")
	host.Output(t, maker)
	got := map[string]listing{}
	for _, m := range dump(t) {
		got[m.Attributes().String(unix.NFTA_RULE_CHAIN)], _ = listingOf(m)
	}
	command := map[string]string{"ip": "iptables", "ip6": "ip6tables"}[family]
	for i, n := range rules {
		if got[fmt.Sprint("C", i)] != n.want {
			t.Errorf("%s %s: got %d, want %d", family, n.rule, got[fmt.Sprint("C", i)], n.want)
		}
	}
	for number, r := range all {
		saved := map[string]string{}
		if !fails {
			printed, err := r.run(command+"-save", "-t", "filter")
			host.Check(t, err)
			for _, line := range lines(printed) {
				chain, rest, _ := strings.Cut(strings.TrimPrefix(line, "-A "), " ")
				saved[chain] = rest
			}
		}
		for i, n := range rules {
			chain := fmt.Sprint("C", i)
			if fails {
				printed, err := r.run(command, "-S", chain)
				saved[chain] = strings.TrimPrefix(strings.Join(lines(printed), ""), "-A "+chain+" ")
				if (err != nil) != (n.want == unreadable || number == 0) {
					t.Errorf("%s, %s: %v %s", r.name, n.rule, err, printed)
				}
			}
			if saved[chain] != n.prints && n.prints != "?" && !(fails && number == 0) {
				t.Errorf("%s, %s: it lists %q, want %q", r.name, n.rule, saved[chain], n.prints)
			}
		}
	}
}

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

// What iptables-nft has made itself, it lists faithfully, with each match and each target that the package has.
func TestListingOfItsOwn(t *testing.T) {
	all := releases(t)
	host.Netns(t)
	missing := map[string]bool{}
	for _, root := range []string{"", host.NewestIptables(t)} {
		for _, prefix := range []string{"xt", "ipt", "ip6t"} {
			files, err := filepath.Glob(root + "/usr/lib/*/xtables/lib" + prefix + "_*.so")
			host.Check(t, err)
			for _, file := range files {
				missing[strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "lib"), ".so")] = true
			}
		}
	}
	if len(missing) < 100 {
		t.Fatalf("the package has %d extensions", len(missing))
	}
	for _, r := range all {
		host.Run(t, "nft", "flush", "ruleset")
		want, extensions := makeRules(t, r, rows(t, "iptables.rules"))
		for _, extension := range extensions {
			delete(missing, extension)
		}
		var got []string
		for _, m := range dump(t) {
			how, target := listingOf(m)
			command := map[uint8]string{unix.NFPROTO_IPV4: "iptables", unix.NFPROTO_IPV6: "ip6tables"}[m.Family()]
			rule := command + " " + m.Attributes().String(unix.NFTA_RULE_TABLE) + " " + target
			if how != faithful {
				t.Errorf("%s: got %d for a rule in %s", r.name, how, rule)
			}
			got = append(got, rule)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%q\nwant\n%q", r.name, got, want)
		}
		saved := 0
		for _, command := range []string{"iptables-save", "ip6tables-save"} {
			printed, err := r.run(command)
			host.Check(t, err)
			saved += len(lines(printed))
		}
		if saved != len(want) {
			t.Errorf("%s lists %d of %d rules", r.name, saved, len(want))
		}
	}
	for extension := range missing {
		t.Errorf("%s has no rule here", extension)
	}
}
