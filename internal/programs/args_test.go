// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"strings"
	"testing"
)

func TestAdds(t *testing.T) {
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
		{"iptables -AINPUT", true, false},
		{"iptables -A INPUT -ieth0", true, false},
		{"iptables -m comment --comment -L -A INPUT", true, false},
		{"iptables -A INPUT -j LOG --log-prefix -Sx", true, false},
		{"iptables-restore", true, true},
		{"iptables-restore --noflush -w 5", true, true},
		{"iptables-restore -n -T filter file", true, true},
		{"ip6tables-restore --verbose", true, true},

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
		{"iptables-restore --t=nat", true, true},
		{"iptables-restore --test", false, false},
		{"iptables-restore -t", false, false},
		{"iptables-restore -nt", false, false},
		{"iptables-restore --te", false, false},
		{"iptables-restore --version", false, false},
		{"iptables-restore --help", false, false},
		{"iptables-restore -V", false, false},
	} {
		argv := strings.Fields(test.call)
		adds := Adds(argv)
		if adds != test.adds || adds && NeedsNAT(argv) != test.nat {
			t.Errorf("%s: got %v, %v", test.call, adds, adds && NeedsNAT(argv))
		}
	}
	if Adds(nil) {
		t.Error("nothing: got true")
	}
}
