// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestAdds(t *testing.T) {
	called := map[string]bool{}
	for _, test := range []struct {
		call      string
		adds, nat bool
	}{
		{"iptables -A INPUT -j DROP", true, false},
		{"/usr/sbin/ip6tables -w 5 -t nat -I POSTROUTING 1 -j MASQUERADE", true, true},
		{"iptables -tnat -N MINE", true, true},
		{"iptables --table=nat --new-chain MINE", true, true},
		{"iptables -R INPUT 1 -j DROP", true, false},
		{"iptables -P INPUT DROP", true, false},
		{"iptables -E A B", true, false},
		{"iptables --append INPUT", true, false},
		{"iptables --app INPUT", true, false},
		{"iptables --append=INPUT -j DROP", true, false},
		{"iptables --table=nat --new=MINE", true, true},
		{"iptables --pol INPUT DROP", true, false},
		{"iptables --rename A B", true, false},
		{"iptables -vA INPUT", true, false},
		{"iptables -4A INPUT", true, false},
		{"iptables -wWA INPUT", true, false},
		{"iptables -AINPUT", true, false},
		{"iptables -A INPUT -ieth0", true, false},
		{"iptables -m comment --comment -L -A INPUT", true, false},
		{"iptables -A INPUT -j LOG --log-prefix -Sx", true, false},
		{"iptables-restore", true, true},
		{"iptables-restore --noflush -w 5", true, true},
		{"iptables-restore -n -T filter file", true, true},
		{"ip6tables-restore --verbose", true, true},
		{"iptables-restore -M -t", true, true},
		{"iptables-restore -nM -t", true, true},
		{"iptables-restore --modp -t -n", true, true},
		{"iptables-restore -T -V", true, true},
		{"iptables-restore --table -h", true, true},
		{"iptables-restore -n -- -t", true, true},

		{"iptables -L", false, false},
		{"iptables -nt nat -L", false, false},
		{"iptables --lis -t nat", false, false},
		{"iptables -SINPUT", false, false},
		{"iptables -D INPUT -j DROP", false, false},
		{"iptables -C INPUT -j DROP", false, false},
		{"iptables -F", false, false},
		{"iptables -X MINE", false, false},
		{"iptables -Z", false, false},
		{"iptables --version", false, false},
		{"iptables -V", false, false},
		{"iptables -D INPUT -i eth0 -p tcp", false, false},
		{"iptables -- -", false, false},
		{"iptables", false, false},
		{"iptables-save -t nat", false, false},
		{"iptables-save -f -A", false, false},
		{"ip6tables-save -c", false, false},
		{"iptables-restore --t=nat", true, true},
		{"iptables-restore --test", false, false},
		{"iptables-restore -t", false, false},
		{"iptables-restore -nt", false, false},
		{"iptables-restore --te", false, false},
		{"iptables-restore --version", false, false},
		{"iptables-restore --help", false, false},
		{"iptables-restore -V", false, false},
		{"iptables-restore -M/sbin/modprobe -t", false, false},
		{"iptables-restore -M x -t", false, false},
		{"iptables-restore --modprobe=x -t", false, false},
		{"iptables-restore -T filter -nt", false, false},
		{"iptables-restore -w 5 -W 1 -t", false, false},
	} {
		argv := strings.Fields(test.call)
		called[filepath.Base(argv[0])] = true
		adds := adds(argv)
		if adds != test.adds || adds && needsNAT(argv) != test.nat {
			t.Errorf("%s: got %v, %v", test.call, adds, adds && needsNAT(argv))
		}
		if adds && !changes(argv) {
			t.Errorf("%s: it adds, and changes nothing", test.call)
		}
	}
	for _, name := range exec.Names() {
		if !called[name] {
			t.Errorf("no call of %s is tested: has, in arguments.go, must know whether it adds", name)
		}
	}
}

// Deleting and flushing change a table too; listing and saving do not.
func TestChanges(t *testing.T) {
	for call, want := range map[string]bool{
		"iptables -D INPUT 1":            true,
		"iptables --delete INPUT 1":      true,
		"iptables --del INPUT 1":         true,
		"iptables -F":                    true,
		"iptables -t nat -F POSTROUTING": true,
		"iptables --flush":               true,
		"iptables -wF":                   true,
		"iptables -X MINE":               true,
		"iptables --delete-chain=MINE":   true,
		"iptables-restore -n":            true,

		"iptables-restore -t":         false,
		"iptables -S":                 false,
		"iptables -nvL":               false,
		"iptables -C INPUT -j DROP":   false,
		"iptables -Z":                 false,
		"iptables --version":          false,
		"iptables-save -D":            false,
		"ip6tables-save -f --flush=x": false,
	} {
		got := changes(strings.Fields(call))
		if got != want {
			t.Errorf("%s: got %v", call, got)
		}
	}
}

// The letters that iptables-restore gives to getopt(3): those with a colon take a value.
func TestRestoreOptions(t *testing.T) {
	letters := regexp.MustCompile(`\x00([A-Za-z0-9:]*M:T:[A-Za-z0-9:]*)\x00`)
	option := regexp.MustCompile(`.:*`)
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy} {
		program, err := os.ReadFile("/usr/sbin/" + "xtables-" + string(mode) + "-multi")
		if err != nil {
			host.Cannot(t, "read a program of iptables: %v; make test installs it", err)
		}
		found := letters.FindSubmatch(program)
		if found == nil {
			t.Fatalf("%s: no option letters of iptables-restore", mode)
		}
		for _, o := range option.FindAllString(string(found[1]), -1) {
			letter := o[:1]
			takesValue := len(o) > 1
			parsed, _ := parse("-"+letter, restoring)
			known := parsed != 0 || strings.Contains(valueless, letter)
			endsIt := !restores([]string{"-" + letter})
			if !known || takesValue != strings.Contains("MT", letter) || endsIt != strings.Contains("thV", letter) {
				t.Errorf("%s, %q: -%s, known: %v, takes a value: %v, ends it: %v",
					mode, found[1], letter, known, takesValue, endsIt)
			}
		}
	}
}
