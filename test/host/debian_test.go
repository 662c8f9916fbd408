// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	if err := host.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv("TEST_DESCRIBE") != "" {
		fmt.Print(describe())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A machine on which somebody has done everything that could disturb a test: the containers on it are as on any other.
// The machine is itself a container.
func TestContainerIsThatOfAnyMachine(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	before := describe()
	host.Run(t, "sh", "-ec", `
		update-alternatives --set iptables /usr/sbin/iptables-legacy
		rm /usr/sbin/ip6tables; echo mine >/usr/sbin/ip6tables
		ln -sf gone /usr/sbin/iptables-nft
		ln -s true /usr/sbin/.iptables.iptables-wrapper
		cp /bin/true /usr/sbin/iptables-wrapper; ln -s iptables-wrapper /usr/sbin/iptables-current
		mount -t tmpfs none /usr/local/sbin; cp /bin/true /usr/local/sbin/iptables
		echo mine >/var/lib/dpkg/alternatives/ip6tables
		ln -s nft /dev/shm/iptables-wrapper.0; ln -s legacy /run/iptables-wrapper.0`)
	self, err := os.Executable()
	host.Check(t, err)
	cmd := host.Contained(t.TempDir(), "sh", "-c", "trap '' HUP INT; exec $0", self)
	cmd.Env = append(cmd.Env, "TEST_DESCRIBE=1")
	output, err := cmd.Output()
	if err != nil || !strings.Contains(string(output), before) {
		t.Errorf("%v: got %s\nwant %s", err, output, before)
	}
}

// describe lists what a test could notice of the machine.
func describe() string {
	var b strings.Builder
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, name := range []string{family, family + "-save", family + "-restore", family + "-nft",
			family + "-legacy-save"} {
			path, err := exec.LookPath(name)
			end, _ := filepath.EvalSymlinks(path)
			fmt.Fprintln(&b, name, path, end, err)
		}
	}
	output, err := exec.Command("sh", "-c", `
		update-alternatives --query iptables; update-alternatives --query ip6tables
		ls -A /dev/shm; ls -A /run; ls -A /usr/sbin | grep -e wrapper -e current
		iptables --version; grep SigIgn /proc/self/status`).CombinedOutput()
	return fmt.Sprintf("%s%s%v\n", b.String(), output, err)
}
