// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// crowd makes as many links as it is told, as a user without capabilities, under the names that memories of earlier
// lives of this container would have. Each says that a count was certain, so none of them ends the search for one
// that says otherwise.
const crowd = `
	netns=$(stat -L -c %i /proc/self/ns/net)
	boot=$(cut -c -8 /proc/sys/kernel/random/boot_id)
	exec setpriv --reuid=1000 --regid=1000 --clear-groups perl -e '
		my ($links, $netns, $boot) = @ARGV;
		for my $start (1 .. $links) {
			my $life = "$netns.$start.$boot";
			symlink "nft rule-count certain $life x", "/dev/shm/iptables-wrapper.1000.$life" or die "$life: $!";
		}' "$0" $netns $boot`

// Whoever fills the shared /dev/shm with links makes a wrapped call neither larger, so that it would be killed in a
// small container, nor wrong. But somebody may have guessed, so a count of rules is not certain any more.
func TestCrowd(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	readOnly(t)
	host.Run(t, "iptables-nft", "-A", "FORWARD", "-j", "ACCEPT")
	before := peak(t, "iptables", "-S")
	host.Run(t, "sh", "-ec", crowd, fmt.Sprint(host.Number(150_000, 300_000)))
	after := peak(t, "iptables", "-S")
	if after > before+4<<10 {
		t.Errorf("%d kB where there was nothing, and %d kB in the crowd", before, after)
	}
	host.Run(t, "iptables", "-A", "INPUT", "-s", "192.0.2.1", "-j", "ACCEPT")
	if rules := host.Run(t, "iptables-nft", "-S", "INPUT"); !strings.Contains(rules, "192.0.2.1") {
		t.Errorf("nft has %q", rules)
	}
	memories := host.Run(t, "sh", "-c", "readlink /dev/shm/iptables-wrapper.0.*")
	if !strings.HasPrefix(memories, "nft rule-count guess:") {
		t.Errorf("remembered: %q", memories)
	}
	host.Run(t, "iptables-wrapper", "reset")
	said := host.Run(t, "sh", "-c", "iptables-wrapper detect --strict 2>&1; test $? = 3")
	if !strings.Contains(said, `"/dev/shm has more than 4096 entries"`) {
		t.Errorf("detect: %s", said)
	}
}

// peak runs a program and returns the most memory that it had, in kB.
func peak(t *testing.T, name string, args ...string) int64 {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	host.Check(t, cmd.Run())
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
}
