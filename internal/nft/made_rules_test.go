// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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

// dump reads all rules, in their order.
func dump(t *testing.T) (rules []Message) {
	t.Helper()
	var conn Conn
	defer conn.Close()
	err := conn.Dump(unix.NFT_MSG_GETRULE, unix.AF_UNSPEC, func(m Message) error {
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

// unusable are the extensions of which a kernel may have nothing, or that need what is not made here.
var unusable = map[string]string{
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

// makeRules has a release make the rules of iptables.rules, those of one command at once, and returns which there are
// then. A rule that may be unusable is made alone.
func makeRules(t *testing.T, r release, rows []string) (made, extensions []string) {
	t.Helper()
	rules := map[string]map[string]string{
		"iptables":  {"filter": ":USER - [0:0]\n"},
		"ip6tables": {},
	}
	var alone [][]string
	for _, row := range rows {
		words := strings.Fields(row)
		extension, command, table := words[0], words[1], words[3]
		extensions = append(extensions, extension)
		if unusable[extension] != "" {
			alone = append(alone, words[1:])
			continue
		}
		_, rule, _ := strings.Cut(row, " -t "+table+" ")
		rules[command][table] += rule + "\n"
		made = append(made, command+" "+table+" "+targetOf(words))
	}
	for command, tables := range rules {
		input := ""
		for table, rules := range tables {
			input += "*" + table + "\n" + rules + "COMMIT\n"
		}
		printed, err := r.feed(input, command+"-restore")
		if err != nil {
			t.Errorf("%s refuses what %s-restore reads: %v: %s\n%s", r.name, command, err, printed, input)
		}
	}
	for _, words := range alone {
		_, err := r.run(words...)
		if err == nil {
			made = append(made, words[0]+" "+words[2]+" "+targetOf(words))
		}
	}
	return made, extensions
}

// targetOf is what follows -j or -g in a command; in nf_tables, NOTRACK is CT.
func targetOf(words []string) string {
	i := slices.IndexFunc(words, func(word string) bool { return word == "-j" || word == "-g" })
	switch {
	case i < 0:
		return ""
	case words[i+1] == "NOTRACK":
		return "CT"
	}
	return words[i+1]
}

// What iptables-nft has made itself, of each match and each target that its package has, is not taken for nft's.
func TestMadeByIptables(t *testing.T) {
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
		want, extensions := makeRules(t, r, rows(t, "../../rules/testdata/iptables.rules"))
		for _, extension := range extensions {
			delete(missing, extension)
		}
		var got []string
		for _, m := range dump(t) {
			made := parseRule(m.Attributes())
			command := map[uint8]string{unix.NFPROTO_IPV4: "iptables", unix.NFPROTO_IPV6: "ip6tables"}[m.Family()]
			rule := command + " " + m.Attributes().String(unix.NFTA_RULE_TABLE) + " "
			if made.Native {
				t.Errorf("%s: a rule in %s%s is taken for nft's", r.name, rule, made.Target)
			}
			got = append(got, rule)
		}
		if len(got) != len(want) {
			t.Errorf("%s: read %d of %d rules", r.name, len(got), len(want))
		}
	}
	for extension := range missing {
		t.Errorf("%s has no rule here", extension)
	}
}
